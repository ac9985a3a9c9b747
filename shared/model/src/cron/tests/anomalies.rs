//! Anomalies of a clock change, compared with a walk by the minute and with the firings themselves.

use chrono::{DateTime, Duration, NaiveDateTime, Utc};
use chrono_tz::Tz;
use proptest::prelude::*;

use super::naive::{Naive, daily, expressions};
use super::walk::{DSTS, changes, walk, wall_s};
use super::{at, parse};
use crate::cron::{Anomaly, AnomalyKind, Dst, Expression};
use crate::steps::count_steps;
use crate::zone::Zone;

/// The walk's view of one change: the matching wall times that are skipped, or shown twice.
#[derive(Debug, PartialEq)]
struct Seen {
    change_s: i64,
    gap: bool,
    walls: Vec<i64>,
}

/// Returns every change in `from_s + 1..=to_s` that affects the expression, checking every minute.
fn seen(naive: &Naive, tz: Tz, from_s: i64, to_s: i64) -> Vec<Seen> {
    let selects = |wall_s: &i64| naive.selects(DateTime::from_timestamp(*wall_s, 0).unwrap());
    let mut seen = Vec::new();
    for at_s in (from_s + 60..=to_s).step_by(60) {
        let (before_s, now_s) = (wall_s(tz, at_s - 60) + 60, wall_s(tz, at_s));
        if before_s == now_s {
            continue;
        }
        let between = before_s.min(now_s)..before_s.max(now_s);
        let walls: Vec<i64> = between.step_by(60).filter(selects).collect();
        if !walls.is_empty() {
            seen.push(Seen { change_s: at_s, gap: before_s < now_s, walls });
        }
    }
    seen
}

fn naive_s(wall: NaiveDateTime) -> i64 {
    wall.and_utc().timestamp()
}

/// Checks the anomaly against the firings, which the walk does not use.
fn check(anomaly: &Anomaly, firings: &[i64]) -> Result<(), TestCaseError> {
    let fires = |at: Option<DateTime<Utc>>| at.map(|at| firings.contains(&at.timestamp()));
    let (first, again) = (fires(anomaly.fires_at), fires(anomaly.again_at));
    match anomaly.kind {
        AnomalyKind::Moved => {
            prop_assert_eq!((first, again), (Some(true), None));
            prop_assert_eq!(anomaly.fires_at, Some(anomaly.change_at));
        }
        AnomalyKind::Skipped => prop_assert_eq!((first, again), (None, None)),
        AnomalyKind::Doubled => prop_assert_eq!((first, again), (Some(true), Some(true))),
        AnomalyKind::FirstPass => prop_assert_eq!((first, again), (Some(true), Some(false))),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_anomalies_are_what_a_walk_by_the_minute_sees_and_what_then_fires(
        naive in prop_oneof![3 => daily(false), 1 => expressions()],
        (tz, change_s) in changes(),
        dst in prop::sample::select(&DSTS[..]),
        before_s in 0..172_800_i64,
    ) {
        let text = naive.to_string();
        let text = if naive.has_seconds() { text.split_once(' ').unwrap().1.to_owned() } else { text };
        let naive = naive.without_seconds();
        let from_s = change_s - before_s;
        let (from_s, to_s) = (from_s - from_s % 60, change_s + 172_800);
        let zone = Zone::parse(tz.name()).unwrap();
        let [from, to] = [from_s, to_s].map(|at_s| DateTime::from_timestamp(at_s, 0).unwrap());
        let reported = parse(&text).anomalies(from, to, zone, dst);
        let as_seen: Vec<Seen> = seen(&naive, tz, from_s, to_s);
        prop_assert_eq!(reported.len(), as_seen.len(), "{} in {}: {:?}", text, tz, reported);
        // A day more on both sides: a first pass may lie before `from`, a second one after `to`.
        let firings = walk(&naive, tz, dst, from_s - 90_000, to_s + 90_000, 60);
        for (reported, seen) in reported.iter().zip(&as_seen) {
            prop_assert_eq!(reported.change_at.timestamp(), seen.change_s);
            prop_assert_eq!(reported.again_at.is_none(), seen.gap);
            prop_assert_eq!(naive_s(reported.first_wall), seen.walls[0]);
            prop_assert_eq!(Some(&naive_s(reported.last_wall)), seen.walls.last());
            prop_assert_eq!(reported.walls as usize, seen.walls.len());
            prop_assert!(reported.offset_before_s < reported.offset_after_s || !seen.gap);
            check(reported, &firings)?;
        }
    }

    /// Without a change there is no anomaly: the firings of a day are those of the clock.
    #[test]
    fn a_zone_without_changes_has_no_anomalies(naive in expressions(), days in 1..800_i64) {
        let (from, to) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z") + Duration::days(days));
        prop_assert_eq!(parse(&naive.to_string()).anomalies(from, to, Zone::UTC, Dst::Vixie), vec![]);
    }
}

/// The change, the first and the last wall time affected, and their number.
type Affected = (DateTime<Utc>, NaiveDateTime, NaiveDateTime, u32);

/// Returns what a change affects by a search for one wall time after the other.
fn one_by_one(expression: &Expression, change: &Anomaly) -> Option<Affected> {
    let change_s = change.change_at.timestamp();
    let offsets_s = [change.offset_before_s, change.offset_after_s].map(i64::from);
    let [first, end] = [offsets_s.iter().min(), offsets_s.iter().max()]
        .map(|offset_s| DateTime::from_timestamp(change_s + offset_s.unwrap(), 0).unwrap());
    // In UTC a wall time is an instant.
    let matches = expression.iter_after(first - Duration::seconds(1), Zone::UTC, Dst::Vixie);
    let walls: Vec<_> =
        matches.take_while(|wall| *wall < end).map(|wall| wall.naive_utc()).collect();
    Some((change.change_at, *walls.first()?, *walls.last()?, walls.len() as u32))
}

#[test]
fn as_many_wall_times_are_affected_as_a_search_finds_one_by_one() {
    for (zone, from, to, seconds) in [
        // A day is missing, and one comes twice, but for an hour.
        ("Pacific/Apia", "2011-12-29T00:00:00Z", "2012-01-01T00:00:00Z", &[86_400_u32][..]),
        ("Pacific/Kwajalein", "1969-09-29T00:00:00Z", "1969-10-02T00:00:00Z", &[82_800]),
        ("Antarctica/Troll", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", &[7_200; 2]),
        ("Australia/Lord_Howe", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", &[1_800; 2]),
        ("Europe/Vienna", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", &[3_600; 2]),
        // On the first of November from 00:01 back to 23:01.
        ("America/St_Johns", "2009-01-01T00:00:00Z", "2010-01-01T00:00:00Z", &[3_600; 2]),
    ] {
        let (zone, from, to) = (Zone::parse(zone).unwrap(), at(from), at(to));
        let changes = parse("* * * * * *").anomalies(from, to, zone, Dst::Vixie);
        let walls: Vec<u32> = changes.iter().map(|change| change.walls).collect();
        assert_eq!(walls, seconds, "{zone}: every second of the changes");
        for text in [
            "* * 0-23 * * *",
            "*/7 */13 * * * *",
            "59 59 * * * *",
            "0-29,59 30 1,2 * * *",
            "0 0 0 * * *",
            "15,45 1-2 * * *",
            "0,30 0,23 L,1 * *",
            "0 12 30 12 *",
            "30 0 12 * * FRI#5",
            "0 0 30 2 *",
        ] {
            let expression = parse(text);
            let expected = changes.iter().filter_map(|change| one_by_one(&expression, change));
            let expected: Vec<Affected> = expected.collect();
            for dst in DSTS {
                let found = expression.anomalies(from, to, zone, dst);
                let found = found.iter().map(|a| (a.change_at, a.first_wall, a.last_wall, a.walls));
                assert_eq!(found.collect::<Vec<_>>(), expected, "{text} in {zone}, {dst:?}");
            }
        }
    }
}

/// Steps, not time: the same on every machine.
#[test]
fn a_day_that_was_skipped_costs_no_step_for_each_of_its_seconds() {
    let zone = Zone::parse("Pacific/Apia").unwrap();
    let (from, to) = (at("2010-06-01T00:00:00Z"), at("2012-06-01T00:00:00Z"));
    for (text, most) in [("* * 0-23 * * *", 86_400), ("* * * * *", 1_440), ("0 12 * * *", 1)] {
        let expression = parse(text);
        let (steps, found) = count_steps(|| expression.anomalies(from, to, zone, Dst::Vixie));
        assert_eq!(found.iter().map(|change| change.walls).max(), Some(most), "{text}");
        assert!(steps < 700, "{steps} steps: {text}");
    }
}

/// Returns kind, first wall time, number of wall times, firing and second time, of the changes of 2026.
fn reported(text: &str, zone: &str, dst: Dst) -> Vec<String> {
    let zone = Zone::parse(zone).unwrap();
    let (from, to) = (at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"));
    let reported = parse(text).anomalies(from, to, zone, dst);
    let short = |at: Option<DateTime<Utc>>| {
        at.map_or("-".to_owned(), |at| at.format("%m-%dT%H:%M").to_string())
    };
    let line = |a: &Anomaly| {
        let merged = if a.merged { " merged" } else { "" };
        let wall = a.first_wall.format("%m-%d %H:%M");
        let kind = a.kind.as_str();
        format!("{kind} {wall} ×{} {} {}{merged}", a.walls, short(a.fires_at), short(a.again_at))
    };
    reported.iter().map(line).collect()
}

#[test]
fn each_kind_of_anomaly_is_told_as_the_page_on_cron_says_it_fires() {
    const VIENNA: &str = "Europe/Vienna";
    for (text, dst, lines) in [
        (
            "30 2 * * *",
            Dst::Vixie,
            [
                "moved 03-29 02:30 ×1 03-29T01:00 -",
                "first_pass 10-25 02:30 ×1 10-25T00:30 10-25T01:30",
            ],
        ),
        (
            "30 2 * * *",
            Dst::Skip,
            ["skipped 03-29 02:30 ×1 - -", "first_pass 10-25 02:30 ×1 10-25T00:30 10-25T01:30"],
        ),
        (
            "30 2 * * *",
            Dst::Wall,
            [
                "moved 03-29 02:30 ×1 03-29T01:00 -",
                "doubled 10-25 02:30 ×1 10-25T00:30 10-25T01:30",
            ],
        ),
        (
            "15,45 2 * * *",
            Dst::Vixie,
            [
                "moved 03-29 02:15 ×2 03-29T01:00 -",
                "first_pass 10-25 02:15 ×2 10-25T00:15 10-25T01:15",
            ],
        ),
        (
            "0 2,3 * * *",
            Dst::Vixie,
            [
                "moved 03-29 02:00 ×1 03-29T01:00 - merged",
                "first_pass 10-25 02:00 ×1 10-25T00:00 10-25T01:00",
            ],
        ),
        (
            "*/30 2 * * *",
            Dst::Vixie,
            ["skipped 03-29 02:00 ×2 - -", "doubled 10-25 02:00 ×2 10-25T00:00 10-25T01:00"],
        ),
    ] {
        assert_eq!(reported(text, VIENNA, dst), lines, "{text}");
    }
    assert_eq!(reported("0 12 * * *", VIENNA, Dst::Vixie), [""; 0]);
    // Half an hour, and a change at midnight.
    let gap = reported("15 2 * * *", "Australia/Lord_Howe", Dst::Vixie);
    assert_eq!(gap, ["moved 10-04 02:15 ×1 10-03T15:30 -"]);
    assert_eq!(
        reported("@daily", "Africa/Cairo", Dst::Vixie)[0],
        "moved 04-24 00:00 ×1 04-23T22:00 -"
    );
}
