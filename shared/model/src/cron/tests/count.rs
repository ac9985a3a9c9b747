//! Counting against listing: count and search from the end agree with repeated searches.

use chrono::{DateTime, Duration, Utc};
use proptest::prelude::*;

use super::naive::{daily, expressions};
use super::walk::{DSTS, anywhere, changes};
use super::{at, parse};
use crate::cron::{Dst, Expression};
use crate::steps::count_steps;
use crate::zone::Zone;

/// Returns the firings from `from` on and before `until`, one after the other; `None`: too many for a test.
fn listed(
    expression: &Expression,
    (zone, dst): (Zone, Dst),
    (from, until): (DateTime<Utc>, DateTime<Utc>),
) -> Option<Vec<DateTime<Utc>>> {
    let before = from - Duration::nanoseconds(1);
    let firings = expression.iter_after(before, zone, dst).take_while(|firing| *firing < until);
    let firings: Vec<_> = firings.take(3_001).collect();
    (firings.len() <= 3_000).then_some(firings)
}

fn holds(
    text: &str,
    (zone, dst): (Zone, Dst),
    (from, until): (DateTime<Utc>, DateTime<Utc>),
    part: f64,
) -> Result<(), TestCaseError> {
    let read = parse(text);
    let Some(firings) = listed(&read, (zone, dst), (from, until)) else { return Ok(()) };
    let count = firings.len() as u64;
    let case = format!("{text} in {zone}, {dst:?}, {from} to {until}");
    prop_assert_eq!(read.count(from, until, zone, dst), count, "{}", case);
    let middle = 1 + (part * firings.len() as f64) as u64;
    for back in [0, 1, 2, middle, count, count + 1] {
        let expected = count.checked_sub(back).and_then(|index| firings.get(index as usize));
        let found = read.nth_last(from, until, back, zone, dst);
        prop_assert_eq!(found.as_ref(), expected, "{} from the end: {}", back, case);
    }
    // A range that is cut anywhere has the firings of its parts.
    let cut = from
        + Duration::nanoseconds(
            ((until - from).num_milliseconds() as f64 * part) as i64 * 1_000_000,
        );
    let parts = read.count(from, cut, zone, dst) + read.count(cut, until, zone, dst);
    prop_assert_eq!(parts, count, "cut at {}: {}", cut, case);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn around_a_change_of_the_clocks_as_many_are_counted_as_there_are(
        naive in prop_oneof![2 => daily(false), 1 => daily(true), 1 => expressions()],
        (tz, change_s) in changes(),
        dst in prop::sample::select(&DSTS[..]),
        (before_s, after_s) in (0..200_000_i64, 0..200_000_i64),
        (nanos, part) in (prop_oneof![Just(0_u32), 1..999_999_999_u32], 0.0..1.0_f64),
    ) {
        let from = DateTime::from_timestamp(change_s - before_s, nanos).unwrap();
        let until = DateTime::from_timestamp(change_s + after_s, nanos).unwrap();
        holds(&naive.to_string(), (Zone::parse(tz.name()).unwrap(), dst), (from, until), part)?;
    }

    #[test]
    fn in_any_zone_and_year_as_many_are_counted_as_there_are(
        naive in expressions(),
        (zone, from) in anywhere(),
        dst in prop::sample::select(&DSTS[..]),
        length_s in prop_oneof![0..90_000_i64, 0..40_000_000_i64],
        part in 0.0..1.0_f64,
    ) {
        holds(&naive.to_string(), (zone, dst), (from, from + Duration::seconds(length_s)), part)?;
    }
}

#[test]
fn the_first_instant_after_a_gap_counts_once_however_many_wall_times_lie_in_it() {
    let vienna = Zone::parse("Europe/Vienna").unwrap();
    let (gap, day) = (at("2026-03-29T01:00:00Z"), Duration::days(1));
    for (text, dst, count) in [
        ("30 2 * * *", Dst::Vixie, 1),
        ("30 2 * * *", Dst::Skip, 0),
        ("10,20,30 2 * * *", Dst::Vixie, 1),
        ("0,30 2,3 * * *", Dst::Vixie, 2),
        ("*/30 * * * *", Dst::Vixie, 2),
    ] {
        let read = parse(text);
        for from in [gap - day, gap] {
            let before = if from < gap { read.count(from, gap, vienna, dst) } else { 0 };
            let counted = read.count(from, gap + Duration::hours(1), vienna, dst) - before;
            assert_eq!(counted, count, "{text}, {dst:?}, from {from}");
        }
    }
}

#[test]
fn an_empty_or_a_reversed_range_counts_nothing() {
    let read = parse("* * * * * *");
    let (early, late) = (at("2026-01-01T00:00:00Z"), at("2026-01-02T00:00:00Z"));
    assert_eq!(read.count(early, early, Zone::UTC, Dst::Vixie), 0);
    assert_eq!(read.count(late, early, Zone::UTC, Dst::Vixie), 0);
    assert_eq!(read.nth_last(late, early, 1, Zone::UTC, Dst::Vixie), None);
    let (first, last) = (DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC);
    let all = read.count(last - Duration::days(1), last, Zone::UTC, Dst::Vixie);
    assert_eq!(all, 86_400, "up to the last second that can be represented");
    assert_eq!(read.count(first, first + Duration::days(1), Zone::UTC, Dst::Vixie), 86_400);
}

/// Steps, not time: the same on every machine.
#[test]
fn a_year_of_seconds_is_counted_in_as_few_steps_as_a_year_of_days() {
    let (from, until) = (at("2025-03-20T12:34:56Z"), at("2026-03-20T12:34:56Z"));
    for zone in ["UTC", "Europe/Vienna", "Africa/Casablanca"].map(|name| Zone::parse(name).unwrap())
    {
        for (text, firings) in
            [("* * * * * *", 365 * 86_400), ("* * * * *", 365 * 1_440), ("0 8 * * *", 365)]
        {
            let read = parse(text);
            let (steps, count) = count_steps(|| read.count(from, until, zone, Dst::Vixie));
            assert_eq!(count, firings, "{text} in {zone}");
            assert!(steps < 400, "{steps} steps: {text} in {zone}");
            let search = || read.nth_last(from, until, count, zone, Dst::Vixie);
            let (steps, first) = count_steps(search);
            assert!(first.is_some(), "{text} in {zone}");
            assert!(steps < 1_500, "{steps} steps to the first: {text} in {zone}");
            let search = || read.nth_last(from, until, 10, zone, Dst::Vixie);
            let (steps, tenth) = count_steps(search);
            assert!(tenth.is_some(), "{text} in {zone}");
            assert!(steps < 200, "{steps} steps to the tenth from the end: {text} in {zone}");
        }
    }
}
