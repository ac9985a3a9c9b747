//! Answers: strictly after, whole seconds, leap days, never, the ends of time, the time taken.

use std::time::{Duration, Instant};

use chrono::{DateTime, Datelike, NaiveDate, Utc};

use super::{at, firings, next_in_utc, parse};
use crate::cron::{Dst, Expression, MAX_EXPRESSION_BYTES};
use crate::zone::Zone;

#[test]
fn a_firing_is_strictly_after_the_instant_asked_from() {
    for (from, next) in [
        ("2026-01-01T07:59:59Z", "2026-01-01T08:00:00Z"),
        ("2026-01-01T07:59:59.999999999Z", "2026-01-01T08:00:00Z"),
        ("2026-01-01T08:00:00Z", "2026-01-02T08:00:00Z"),
        ("2026-01-01T08:00:00.000000001Z", "2026-01-02T08:00:00Z"),
        ("2026-12-31T23:59:59.5Z", "2027-01-01T08:00:00Z"),
        ("1969-12-31T07:59:59.5Z", "1969-12-31T08:00:00Z"),
        ("2016-12-31T23:59:60.5Z", "2017-01-01T08:00:00Z"),
    ] {
        assert_eq!(firings("0 8 * * *", from, 1), [next], "{from}");
    }
}

#[test]
fn the_search_carries_over_every_border() {
    for (text, from, next) in [
        ("* * * * * *", "2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z"),
        ("30 * * * * *", "2026-01-01T00:00:30Z", "2026-01-01T00:01:30Z"),
        ("59 59 * * * *", "2026-01-01T22:59:59Z", "2026-01-01T23:59:59Z"),
        ("59 59 23 * * *", "2026-02-28T23:59:59Z", "2026-03-01T23:59:59Z"),
        ("5 10 20 * * *", "2026-01-01T20:10:05Z", "2026-01-02T20:10:05Z"),
        ("5 10 20 * * *", "2026-01-01T20:10:04Z", "2026-01-01T20:10:05Z"),
        ("5 10 20 * * *", "2026-01-01T19:59:59Z", "2026-01-01T20:10:05Z"),
        ("0 0 1 1 *", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("0 0 1 1 *", "2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z"),
        ("15 10 * 6 1", "2026-06-29T10:15:00Z", "2027-06-07T10:15:00Z"),
        ("0 0 31 12 *", "2026-12-31T00:00:01Z", "2027-12-31T00:00:00Z"),
    ] {
        assert_eq!(firings(text, from, 1), [next], "{text} from {from}");
    }
}

#[test]
fn expressions_of_each_form_first_fire_where_they_say() {
    for (text, first) in [
        ("* * * * *", "2026-01-01T00:01:00Z"),
        ("0 8 * * MON-FRI", "2026-01-01T08:00:00Z"),
        ("*/15 9-17 * * *", "2026-01-01T09:00:00Z"),
        ("0 1 1 * *", "2026-01-01T01:00:00Z"),
        ("0 0 13 * FRI", "2026-01-02T00:00:00Z"),
        ("0 0 */2 * MON", "2026-01-05T00:00:00Z"),
        ("30 7 * * 7", "2026-01-04T07:30:00Z"),
        ("0 22 * * fri-sun", "2026-01-02T22:00:00Z"),
        ("0 0 ? * SAT", "2026-01-03T00:00:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
        ("*/10 * * * * *", "2026-01-01T00:00:10Z"),
        ("@weekly", "2026-01-04T00:00:00Z"),
        ("0 0 L * *", "2026-01-31T00:00:00Z"),
        ("0 0 LW * *", "2026-01-30T00:00:00Z"),
        ("0 0 * * 5L", "2026-01-30T00:00:00Z"),
        ("0 0 * * FRIL", "2026-01-30T00:00:00Z"),
        ("0 0 * * 1#2", "2026-01-12T00:00:00Z"),
        ("0 0 L * 1#1", "2026-01-05T00:00:00Z"),
        ("H 3 * * *", "2026-01-01T03:05:00Z"),
        ("H/15 * * * *", "2026-01-01T00:01:00Z"),
        ("0 8 H * *", "2026-01-22T08:00:00Z"),
    ] {
        assert_eq!(firings(text, "2026-01-01T00:00:00Z", 1), [first], "{text}");
    }
}

#[test]
fn leap_days_skip_the_year_2100() {
    let days = firings("0 12 29 2 *", "2091-01-01T00:00:00Z", 4);
    let years = [2092, 2096, 2104, 2108];
    assert_eq!(days, years.map(|year| format!("{year}-02-29T12:00:00Z")));
    let days = firings("0 12 29 2 *", "2096-02-29T12:00:00Z", 1);
    assert_eq!(days, ["2104-02-29T12:00:00Z"]);
}

#[test]
fn the_rarest_day_is_found_forty_years_ahead() {
    // February 29 on a Sunday, with 2100 in between.
    let days = firings("0 0 29 2 */7", "2080-01-01T00:00:00Z", 3);
    let sundays: Vec<_> = (2080..2200)
        .filter_map(|year| NaiveDate::from_ymd_opt(year, 2, 29))
        .filter(|day| day.weekday().num_days_from_sunday() == 0)
        .map(|day| format!("{day}T00:00:00Z"))
        .take(3)
        .collect();
    assert_eq!(days, sundays);
    let gaps: Vec<i64> =
        days.windows(2).map(|pair| (at(&pair[1]) - at(&pair[0])).num_days() / 365).collect();
    assert!(gaps.contains(&40), "{gaps:?}");
}

#[test]
fn a_day_that_no_calendar_has_never_fires() {
    for text in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30,31 2 ?", "0 0 31 2 */2"] {
        assert_eq!(next_in_utc(&parse(text), at("2026-01-01T00:00:00Z")), None, "{text}");
        assert_eq!(firings(text, "2026-01-01T00:00:00Z", 5).len(), 0, "{text}");
    }
    // Un-starred, the weekday alone is enough.
    assert_eq!(firings("0 0 30 2 1", "2026-01-01T00:00:00Z", 1), ["2026-02-02T00:00:00Z"]);
}

#[test]
fn the_ends_of_time_are_answered_without_panic() {
    let (first, last) = (DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC);
    let every_second = parse("* * * * * *");
    let second = chrono::Duration::seconds(1);
    assert_eq!(next_in_utc(&every_second, last), None);
    assert_eq!(next_in_utc(&every_second, first), Some(first + second));
    let before = last - second;
    assert_eq!(
        next_in_utc(&every_second, before).map(|next| next.timestamp()),
        Some(last.timestamp())
    );
    assert_eq!(every_second.iter_after(before, Zone::UTC, Dst::Vixie).count(), 1);
    for text in ["0 0 29 2 *", "0 0 1 1 *", "0 0 30 2 *", "59 23 31 12 *", "@hourly"] {
        let expression = parse(text);
        assert_eq!(next_in_utc(&expression, last), None, "{text}");
        assert!(next_in_utc(&expression, before).is_none(), "{text}");
        assert!(next_in_utc(&expression, first).is_none_or(|next| next > first), "{text}");
        assert!(
            expression.iter_after(last - chrono::Duration::days(40), Zone::UTC, Dst::Vixie).count()
                < 1000,
            "{text}"
        );
    }
}

#[test]
fn a_search_within_a_stretch_includes_both_of_its_ends_and_nothing_beyond() {
    let civil = |text: &str| at(text).naive_utc();
    let noon = civil("2026-03-10T12:00:00Z");
    for (from, last, found) in [
        ("2026-03-10T12:00:00Z", "2026-03-10T12:00:00Z", Some(noon)),
        ("2026-03-01T00:00:00Z", "2026-03-10T12:00:00Z", Some(noon)),
        ("2026-03-01T00:00:00Z", "2026-03-10T11:59:59Z", None),
        ("2026-03-01T00:00:00Z", "2026-03-09T23:59:59Z", None),
        ("2026-01-01T00:00:00Z", "2026-02-28T23:59:59Z", None),
        ("2026-03-10T12:00:01Z", "2026-04-09T23:59:59Z", None),
        ("2026-03-10T12:00:01Z", "2026-03-10T12:00:00Z", None),
    ] {
        let sets = parse("0 12 10 3 *").sets;
        assert_eq!(sets.first_between(civil(from), civil(last)), found, "{from} to {last}");
    }
    let midnight = civil("2026-04-01T00:00:00Z");
    assert_eq!(parse("0 0 1 4 *").sets.first_between(noon, midnight), Some(midnight));
}

#[test]
fn a_search_from_the_end_of_a_stretch_includes_both_of_its_ends_and_nothing_beyond() {
    let civil = |text: &str| at(text).naive_utc();
    let noon = civil("2026-03-10T12:00:00Z");
    for (first, to, found) in [
        ("2026-03-10T12:00:00Z", "2026-03-10T12:00:00Z", Some(noon)),
        ("2026-03-10T12:00:00Z", "2026-03-10T23:59:59Z", Some(noon)),
        ("2026-03-10T12:00:00Z", "2027-03-10T11:59:59Z", Some(noon)),
        ("2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", Some(noon)),
        ("2026-03-10T12:00:01Z", "2026-03-31T23:59:59Z", None),
        ("2026-03-10T12:00:01Z", "2027-03-10T11:59:59Z", None),
        ("2026-03-01T00:00:00Z", "2026-03-10T11:59:59Z", None),
        ("2026-04-01T00:00:00Z", "2027-02-28T23:59:59Z", None),
        ("2026-03-10T12:00:01Z", "2026-03-10T12:00:00Z", None),
    ] {
        let sets = parse("0 12 10 3 *").sets;
        assert_eq!(sets.last_between(civil(first), civil(to)), found, "{first} to {to}");
    }
    for (text, to, found) in [
        ("5,10 4,20 8,16 * * *", "2026-03-10T16:20:10Z", "2026-03-10T16:20:10Z"),
        ("5,10 4,20 8,16 * * *", "2026-03-10T16:20:09Z", "2026-03-10T16:20:05Z"),
        ("5,10 4,20 8,16 * * *", "2026-03-10T16:20:04Z", "2026-03-10T16:04:10Z"),
        ("5,10 4,20 8,16 * * *", "2026-03-10T16:19:59Z", "2026-03-10T16:04:10Z"),
        ("5,10 4,20 8,16 * * *", "2026-03-10T16:04:04Z", "2026-03-10T08:20:10Z"),
        ("5,10 4,20 8,16 * * *", "2026-03-10T15:59:59Z", "2026-03-10T08:20:10Z"),
        ("5,10 4,20 8,16 * * *", "2026-03-01T08:04:04Z", "2026-02-28T16:20:10Z"),
        ("5,10 4,20 8,16 * * *", "2026-01-01T00:00:00Z", "2025-12-31T16:20:10Z"),
        ("59 59 23 L * *", "2026-03-31T23:59:58Z", "2026-02-28T23:59:59Z"),
    ] {
        let found = Some(civil(found));
        let first = civil("2025-01-01T00:00:00Z");
        assert_eq!(parse(text).sets.last_between(first, civil(to)), found, "{text} to {to}");
    }
}

/// Takes the best of several runs, so that a busy machine does not decide.
fn best_of_runs(work: impl Fn()) -> Duration {
    (0..30)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .min()
        .unwrap()
}

#[test]
fn the_worst_expressions_cost_no_more_than_a_thousand_ordinary_answers() {
    let from = at("2026-01-01T00:00:00Z");
    let answer = |expression: &Expression| {
        std::hint::black_box(next_in_utc(expression, from));
    };
    let ordinary = parse("*/5 * * * *");
    let ordinary = best_of_runs(|| (0..1_000).for_each(|_| answer(&ordinary)));
    for text in ["0 0 31 2,4,6,9,11 *", "0 0 30 2 *", "0 0 29 2 */7", "59 59 23 31 2,12 */7"] {
        let expression = parse(text);
        let took = best_of_runs(|| answer(&expression));
        assert!(took < ordinary, "{text} took {took:?}, a thousand others {ordinary:?}");
    }
}

#[test]
fn ten_times_the_text_takes_no_more_than_thirty_times_as_long_to_read() {
    let ranges = || (0..30).flat_map(|start| (30..60).map(move |end| format!("{start}-{end}")));
    let distinct = |number| ranges().take(number).collect::<Vec<_>>().join(",");
    let stars = |number| format!("{}* * * * *", "*,".repeat(number));
    for (short, long) in [
        (stars(50), stars(500)),
        (format!("{} * * * *", distinct(18)), format!("{} * * * *", distinct(180))),
    ] {
        assert!((900..=MAX_EXPRESSION_BYTES).contains(&long.len()), "{} bytes", long.len());
        let read = |text: String| {
            best_of_runs(|| {
                std::hint::black_box(parse(&text));
            })
        };
        let (short, long) = (read(short), read(long));
        assert!(long < short * 30, "{long:?}, and a tenth of it {short:?}");
    }
}
