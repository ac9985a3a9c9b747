//! A cron expression: one line of text.

use chrono::{DateTime, Months, TimeDelta, Timelike, Utc};
use sexton_model::cron::{CronError, Dialect, ECHO_BYTES, Expression};
use sexton_model::job::Schedule;
use sexton_model::plan::Timetable;

use crate::said;

const MAX_SAID_BYTES: usize = 300;

pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let any = Expression::parse(&text, Dialect::Any);
    let five = Expression::parse(&text, Dialect::Unix5);
    let six = Expression::parse(&text, Dialect::Seconds6);
    for error in [&any, &five, &six].into_iter().filter_map(|read| read.as_ref().err()) {
        check_error(error, &text);
    }
    // Either count of fields, never both; a macro is read by each.
    assert_eq!(any.is_ok(), five.is_ok() || six.is_ok());
    let Ok(expression) = any else { return };
    if let Ok(five) = five {
        assert_eq!(five, expression);
    }
    if let Ok(six) = six {
        assert_eq!(six, expression);
    }
    in_other_words(&text, &expression);
    for from in instants() {
        firings(&expression, from);
    }
    as_a_schedule(&text, &expression);
}

fn check_error(error: &CronError, text: &str) {
    said::check(&error.to_string(), MAX_SAID_BYTES);
    let Some(item) = error.item() else { return };
    assert!(item.len() <= ECHO_BYTES);
    // The place is inside of what was written.
    let plain = item.trim_end_matches("...");
    assert!(plain.contains('\\') || text.contains(plain), "{item:?} stands nowhere in the text");
}

/// The same expression, written with single blanks and in the other case, means the same.
fn in_other_words(text: &str, expression: &Expression) {
    let fields: Vec<&str> = text.split([' ', '\t']).filter(|field| !field.is_empty()).collect();
    let plain = fields.join(" ");
    assert_eq!(Expression::parse(&plain, Dialect::Any).as_ref(), Ok(expression));
    if !plain.starts_with('@') {
        for text in [plain.to_ascii_lowercase(), plain.to_ascii_uppercase()] {
            assert_eq!(Expression::parse(&text, Dialect::Any).as_ref(), Ok(expression));
        }
    }
}

fn instants() -> [DateTime<Utc>; 4] {
    let at = |seconds| DateTime::from_timestamp(seconds, 999_999_999).expect("an instant");
    // Before 1970, in a leap year, at the end of a century without one, and the last there is.
    [at(-1), at(1_709_164_799), at(4_107_542_399), DateTime::<Utc>::MAX_UTC]
}

fn firings(expression: &Expression, from: DateTime<Utc>) {
    let mut cursor = from;
    for firing in expression.iter_after(from).take(5) {
        assert!(firing > cursor && firing.nanosecond() == 0);
        assert_eq!(expression.next_after(cursor), Some(firing));
        let before = firing - TimeDelta::nanoseconds(1);
        assert_eq!(expression.next_after(before), Some(firing), "selected, so found");
        cursor = firing;
    }
    // The calendar repeats its rarest day within 40 years.
    if let (Some(first), Some(limit)) =
        (expression.next_after(from), from.checked_add_months(Months::new(41 * 12)))
    {
        assert!(first <= limit);
    }
}

/// Through the database's columns and back, it fires at the same instants.
fn as_a_schedule(text: &str, expression: &Expression) {
    let schedule = Schedule::Cron { expression: text.to_owned() };
    let (kind, column) = schedule.to_columns();
    let again = Schedule::from_columns(kind, column.as_deref()).expect("what was written");
    assert_eq!(again, schedule);
    let timetable = Timetable::new(&again).expect("an expression that was read");
    let from = DateTime::UNIX_EPOCH;
    assert_eq!(timetable.next_after(from), expression.next_after(from));
}
