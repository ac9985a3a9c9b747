//! A cron expression: one line of text, then its zone and its job's name, each after a unit separator (0x1f).

use chrono::{DateTime, Months, TimeDelta, Timelike, Utc};
use sexton_model::cron::{
    CronError, DayRule, Dialect, Dst, Expression, MAX_ECHO_BYTES, restricts_days_twice,
};
use sexton_model::job::Schedule;
use sexton_model::plan::Timetable;
use sexton_model::zone::Zone;

use crate::error_text;

const MAX_ERROR_BYTES: usize = 300;

const DSTS: [Dst; 3] = [Dst::Vixie, Dst::Skip, Dst::Wall];
const RULES: [DayRule; 2] = [DayRule::Both, DayRule::Either];

pub(crate) fn run(input: &[u8]) {
    let input = String::from_utf8_lossy(input);
    let mut parts = input.splitn(3, '\u{1f}');
    let mut part = || parts.next().unwrap_or_default();
    let (text, zone, name) = (part(), part(), part());
    let zone = zone_of(zone);
    let read = |text, dialect| Expression::parse(text, dialect, name);
    let any = read(text, Dialect::Any);
    let five = read(text, Dialect::Unix5);
    let six = read(text, Dialect::Seconds6);
    for error in [&any, &five, &six].into_iter().filter_map(|read| read.as_ref().err()) {
        check_error(error, text);
    }
    // Either number of fields, never both; both parsers accept a macro.
    assert_eq!(any.is_ok(), five.is_ok() || six.is_ok());
    let Ok(expression) = any else { return };
    if let Ok(five) = five {
        assert_eq!(five, expression);
    }
    if let Ok(six) = six {
        assert_eq!(six, expression);
    }
    in_other_words(text, name, &expression);
    with_days(text, name, &expression);
    for from in instants() {
        for dst in DSTS {
            firings(&expression, from, Zone::UTC, dst);
            firings(&expression, from, zone, dst);
        }
        soon_or_never(&expression, from);
    }
    as_a_schedule(text, name, zone, None, &expression);
}

/// The zone of that name, or one that the name's bytes choose, so that any bytes test some zone.
fn zone_of(name: &str) -> Zone {
    Zone::parse(name).unwrap_or_else(|error| {
        error_text::check(&error.to_string(), MAX_ERROR_BYTES);
        let zones: Vec<Zone> = Zone::all().collect();
        let number: usize =
            name.bytes().fold(0, |sum, byte| 31 * (sum % 1_000) + usize::from(byte));
        zones[number % zones.len()]
    })
}

fn check_error(error: &CronError, text: &str) {
    error_text::check(&error.to_string(), MAX_ERROR_BYTES);
    let Some(item) = error.item() else { return };
    assert!(item.len() <= MAX_ECHO_BYTES);
    // The quoted item must occur in the text.
    let plain = item.trim_end_matches("...");
    assert!(plain.contains('\\') || text.contains(plain), "{item:?} stands nowhere in the text");
}

/// The same expression with single blanks and in the other case has the same meaning.
fn in_other_words(text: &str, name: &str, expression: &Expression) {
    let fields: Vec<&str> = text.split([' ', '\t']).filter(|field| !field.is_empty()).collect();
    let plain = fields.join(" ");
    assert_eq!(Expression::parse(&plain, Dialect::Any, name).as_ref(), Ok(expression));
    if !plain.starts_with('@') {
        for text in [plain.to_ascii_lowercase(), plain.to_ascii_uppercase()] {
            assert_eq!(Expression::parse(&text, Dialect::Any, name).as_ref(), Ok(expression));
        }
    }
}

/// A rule for the day fields decides exactly where both restrict the days; otherwise it changes nothing.
fn with_days(text: &str, name: &str, expression: &Expression) {
    let read = RULES.map(|rule| {
        assert_eq!(DayRule::parse(rule.as_str()), Some(rule));
        Expression::parse_with_days(text, Dialect::Any, name, Some(rule)).expect("the same text")
    });
    if restricts_days_twice(text) {
        assert_eq!(read.map(|expression| expression.day_rule()), RULES);
        assert!(read.contains(expression));
        for from in instants() {
            let [both, either] = read.map(|read| read.next_after(from, Zone::UTC, Dst::default()));
            assert!(both.is_none_or(|both| either.is_some_and(|either| either <= both)));
        }
    } else {
        assert_eq!(read, [*expression; 2]);
    }
    for (read, rule) in read.into_iter().zip(RULES) {
        as_a_schedule(text, name, Zone::UTC, Some(rule), &read);
    }
}

fn instants() -> [DateTime<Utc>; 4] {
    let at = |seconds| DateTime::from_timestamp(seconds, 999_999_999).expect("an instant");
    // Before 1970, in a leap year at the end of a winter, at the end of a century without one, and
    // the last possible instant.
    [at(-1), at(1_711_700_000), at(4_107_542_399), DateTime::<Utc>::MAX_UTC]
}

fn firings(expression: &Expression, from: DateTime<Utc>, zone: Zone, dst: Dst) {
    let mut cursor = from;
    for firing in expression.iter_after(from, zone, dst).take(5) {
        assert!(firing > cursor && firing.nanosecond() == 0);
        let between = cursor + (firing - cursor) / 2;
        for from in [cursor, between, firing - TimeDelta::nanoseconds(1)] {
            assert_eq!(expression.next_after(from, zone, dst), Some(firing), "from {from}");
        }
        cursor = firing;
    }
}

/// The calendar repeats its rarest day within 40 years.
fn soon_or_never(expression: &Expression, from: DateTime<Utc>) {
    let next = expression.next_after(from, Zone::UTC, Dst::default());
    if let (Some(first), Some(limit)) = (next, from.checked_add_months(Months::new(41 * 12))) {
        assert!(first <= limit);
    }
}

/// The schedule fires at the same instants after a round trip through the database's columns.
fn as_a_schedule(
    text: &str,
    name: &str,
    zone: Zone,
    days: Option<DayRule>,
    expression: &Expression,
) {
    let schedule = Schedule::Cron { expression: text.to_owned() };
    let (kind, column) = schedule.to_columns();
    let again = Schedule::from_columns(kind, column.as_deref()).expect("what was written");
    assert_eq!(again, schedule);
    assert_eq!(Zone::parse(zone.name()), Ok(zone));
    for dst in DSTS {
        assert_eq!(Dst::parse(dst.as_str()), Some(dst));
        let timetable =
            Timetable::new(name, &again, zone, dst, days).expect("an expression that was read");
        let from = DateTime::UNIX_EPOCH;
        assert_eq!(timetable.next_after(from), expression.next_after(from, zone, dst));
    }
}
