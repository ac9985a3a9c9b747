//! The search against a walk over every minute, or second, of the days around clock changes.
//!
//! The walk implements C8 to C10 as they are written, without windows or masks: it asks chrono-tz for the wall time,
//! remembers the times shown, and notices skipped ones.

use std::collections::HashSet;
use std::sync::LazyLock;

use chrono::{DateTime, Duration, Offset, TimeZone, Utc};
use chrono_tz::Tz;
use proptest::prelude::*;

use super::naive::{Naive, daily, expressions};
use super::parse;
use crate::cron::{Dst, Expression};
use crate::zone::Zone;

/// Zones with unusual clock changes.
const ZONES: [&str; 30] = [
    "Africa/Cairo",      // midnight is missing; summer time given up and taken up again
    "Africa/Casablanca", // back for Ramadan, in the middle of summer
    "Africa/El_Aaiun",
    "Africa/Windhoek", // winter time
    "America/Asuncion",
    "America/Caracas", // half an hour, for nine years
    "America/Havana",
    "America/Juneau",
    "America/New_York",
    "America/Nuuk",   // changes at an hour of UTC, the evening before
    "America/Recife", // a week of summer time
    "America/Santiago",
    "America/Sao_Paulo", // midnight is missing
    "America/Scoresbysund",
    "America/St_Johns", // changed a minute after midnight
    "Antarctica/Casey", // three hours at once
    "Antarctica/Troll", // two hours at once
    "Asia/Beirut",      // midnight is missing
    "Asia/Gaza",
    "Asia/Kathmandu", // a quarter of an hour, once
    "Asia/Pyongyang", // half an hour, there and back
    "Asia/Tehran",
    "Australia/Lord_Howe", // half an hour, twice a year
    "Europe/Dublin",       // summer is its standard time
    "Europe/Moscow",
    "Europe/Vienna",
    "Pacific/Apia",    // a day is missing
    "Pacific/Chatham", // three quarters of an hour beside the others
    "Pacific/Easter",
    "Pacific/Kwajalein", // a day is missing
];

pub(super) const DSTS: [Dst; 3] = [Dst::Vixie, Dst::Skip, Dst::Wall];

pub(super) fn wall_s(tz: Tz, at_s: i64) -> i64 {
    let utc = DateTime::from_timestamp(at_s, 0).unwrap().naive_utc();
    at_s + i64::from(tz.offset_from_utc_datetime(&utc).fix().local_minus_utc())
}

/// Every zone with the half days within which its clocks changed, 1973 to 2040: all offsets are whole minutes then.
static CHANGES: LazyLock<Vec<(Tz, Vec<i64>)>> = LazyLock::new(|| {
    let half_days = |tz: Tz| {
        (94_694_400..2_208_988_800_i64)
            .step_by(43_200)
            .filter(move |at_s| wall_s(tz, *at_s) + 43_200 != wall_s(tz, at_s + 43_200))
            .collect()
    };
    ZONES.iter().map(|name| name.parse().unwrap()).map(|tz| (tz, half_days(tz))).collect()
});

/// A zone, and an instant close to one of its clock changes.
pub(super) fn changes() -> impl Strategy<Value = (Tz, i64)> {
    (0..ZONES.len(), any::<prop::sample::Index>()).prop_map(|(zone, change)| {
        let (tz, half_days) = &CHANGES[zone];
        (*tz, *change.get(half_days))
    })
}

/// Returns all firings in `from_s + 1..=to_s`, checking at every step.
pub(super) fn walk(
    naive: &Naive,
    tz: Tz,
    dst: Dst,
    from_s: i64,
    to_s: i64,
    step_s: i64,
) -> Vec<i64> {
    let selects = |wall_s| naive.selects(DateTime::from_timestamp(wall_s, 0).unwrap());
    let fixed = !naive.wildcard();
    let mut shown = HashSet::new();
    let mut firings = Vec::new();
    // Long enough before, so that a repeated day is known.
    let begin_s = from_s - 90_000;
    let mut before_s = wall_s(tz, begin_s) - step_s;
    for at_s in (begin_s..=to_s).step_by(step_s as usize) {
        let now_s = wall_s(tz, at_s);
        let passed_over = || (before_s + step_s..now_s).step_by(step_s as usize).any(selects);
        let again = !shown.insert(now_s);
        let natural = selects(now_s) && (!fixed || !again || dst == Dst::Wall);
        let after_gap = fixed && dst != Dst::Skip && passed_over();
        if at_s > from_s && (natural || after_gap) {
            firings.push(at_s);
        }
        before_s = now_s;
    }
    firings
}

pub(super) fn found(expression: &Expression, tz: Tz, dst: Dst, from_s: i64, to_s: i64) -> Vec<i64> {
    let (zone, from) =
        (Zone::parse(tz.name()).unwrap(), DateTime::from_timestamp(from_s, 0).unwrap());
    let firings = expression.iter_after(from, zone, dst).map(|firing| firing.timestamp());
    firings.take_while(|firing| *firing <= to_s).collect()
}

/// Any year with data, any zone.
pub(super) fn anywhere() -> impl Strategy<Value = (Zone, DateTime<Utc>)> {
    let nanos = prop_oneof![Just(0_u32), Just(1), Just(999_999_999)];
    let all: Vec<Zone> = Zone::all().collect();
    (prop::sample::select(all), -4_260_000_000..4_200_000_000_i64, nanos)
        .prop_map(|(zone, at_s, nanos)| (zone, DateTime::from_timestamp(at_s, nanos).unwrap()))
}

#[test]
fn every_zone_of_the_walk_has_changed_its_clocks() {
    for (tz, half_days) in CHANGES.iter() {
        assert!(!half_days.is_empty(), "{tz}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn around_a_change_of_the_clocks_the_firings_are_those_of_a_walk_by_the_minute(
        naive in prop_oneof![2 => daily(false), 1 => expressions()],
        (tz, change_s) in changes(),
        dst in prop::sample::select(&DSTS[..]),
        before_s in 0..172_800_i64,
    ) {
        // Of a text with seconds, only the minutes.
        let text = naive.to_string();
        let text = if naive.has_seconds() { text.split_once(' ').unwrap().1.to_owned() } else { text };
        let naive = naive.without_seconds();
        let (from_s, to_s) = (change_s - before_s, change_s + 172_800);
        // The walk goes by whole minutes.
        let from_s = from_s - from_s % 60;
        let expected = walk(&naive, tz, dst, from_s, to_s, 60);
        prop_assert_eq!(found(&parse(&text), tz, dst, from_s, to_s), expected, "{} in {}", text, tz);
    }

    #[test]
    fn every_instant_between_two_firings_has_the_same_next_firing_in_every_zone(
        naive in prop_oneof![1 => daily(true), 1 => expressions()],
        (zone, from) in anywhere(),
        dst in prop::sample::select(&DSTS[..]),
        fraction in 0.0..1.0_f64, nanos in 0..1_000_000_000_i64,
    ) {
        let read = parse(&naive.to_string());
        let Some(previous) = read.next_after(from, zone, dst) else { return Ok(()) };
        prop_assert!(previous > from);
        let Some(next) = read.next_after(previous, zone, dst) else { return Ok(()) };
        prop_assert!(next > previous);
        let gap_s = (next - previous).num_seconds();
        let inside = previous + Duration::seconds((gap_s as f64 * fraction) as i64)
            + Duration::nanoseconds(nanos);
        prop_assert_eq!(read.next_after(inside, zone, dst), Some(next), "{} in {}", naive, zone);
        let just_before = next - Duration::nanoseconds(1);
        prop_assert_eq!(read.next_after(just_before, zone, dst), Some(next));
    }

    #[test]
    fn around_a_change_every_instant_between_two_firings_has_the_same_next_firing(
        naive in daily(false),
        (tz, change_s) in changes(),
        dst in prop::sample::select(&DSTS[..]),
    ) {
        let (read, zone) = (parse(&naive.to_string()), Zone::parse(tz.name()).unwrap());
        let mut next = None;
        // Backwards: each instant's answer equals that of the later instant, or lies between the two.
        for at_s in (change_s - 90_000..change_s + 90_000).rev().step_by(450) {
            let from = DateTime::from_timestamp(at_s, 0).unwrap();
            let answer = read.next_after(from, zone, dst).unwrap();
            let later = from + Duration::seconds(450);
            let same = next.is_none_or(|next| answer == next);
            prop_assert!(same || answer <= later, "{} in {}: {}", naive, zone, from);
            next = Some(answer);
        }
    }

    #[test]
    fn a_list_is_what_asking_one_at_a_time_gives_in_every_zone(
        naive in prop_oneof![1 => daily(true), 1 => expressions()],
        (zone, from) in anywhere(),
        dst in prop::sample::select(&DSTS[..]),
    ) {
        let read = parse(&naive.to_string());
        let list: Vec<_> = read.iter_after(from, zone, dst).take(20).collect();
        let mut cursor = from;
        for firing in &list {
            prop_assert!(*firing > cursor);
            prop_assert_eq!(read.next_after(cursor, zone, dst), Some(*firing));
            cursor = *firing;
        }
        prop_assert!(list.len() == 20 || read.next_after(cursor, zone, dst).is_none());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn around_a_change_of_the_clocks_the_firings_are_those_of_a_walk_by_the_second(
        naive in daily(true),
        (tz, change_s) in changes(),
        dst in prop::sample::select(&DSTS[..]),
        before_s in 0..43_200_i64,
    ) {
        let (from_s, to_s) = (change_s - before_s, change_s + 43_200);
        let expected = walk(&naive, tz, dst, from_s, to_s, 1);
        let found = found(&parse(&naive.to_string()), tz, dst, from_s, to_s);
        prop_assert_eq!(found, expected, "{} in {}", naive, tz);
    }
}
