//! The timetable by cases, and under random limits against a walk over every minute.

use proptest::prelude::*;

use super::*;
use crate::job::MAX_PERIOD;
use crate::moment::Moment;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn ready(schedule: &Schedule) -> Result<Timetable, TimetableError> {
    Timetable::new("a.b", schedule, Zone::UTC, Dst::default(), None)
}

fn every(ms: u64) -> Timetable {
    ready(&Schedule::every(Duration::from_millis(ms))).unwrap()
}

#[test]
fn a_period_counts_from_the_epoch_whenever_it_is_asked() {
    let table = every(900_000);
    for from in ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000001Z", "2026-01-01T00:14:59.9Z"] {
        assert_eq!(table.next_after(at(from)), Some(at("2026-01-01T00:15:00Z")));
    }
    assert_eq!(table.next_after(at("1969-12-31T23:59:59.9999Z")), Some(at("1970-01-01T00:00:00Z")));
}

#[test]
fn one_instant_fires_once() {
    let instant = at("2026-01-01T00:00:00Z");
    let table = ready(&Schedule::At { at: instant.into() }).unwrap();
    assert_eq!(table.next_after(at("2025-12-31T23:59:59.999Z")), Some(instant));
    assert_eq!(table.next_after(instant), None);
    assert_eq!(first_firing(&table, at("2027-01-01T00:00:00Z")), Some(instant));
}

#[test]
fn a_job_without_a_schedule_never_fires() {
    let table = ready(&Schedule::None).unwrap();
    assert_eq!(first_firing(&table, DateTime::UNIX_EPOCH), None);
    assert_eq!(table.key_of(DateTime::UNIX_EPOCH), None);
}

#[test]
fn the_first_firing_is_strictly_after_now() {
    let cron = Schedule::Cron { expression: "0 8 * * *".into() };
    let table = ready(&cron).unwrap();
    assert_eq!(first_firing(&table, at("2025-12-12T08:00:00Z")), Some(at("2025-12-13T08:00:00Z")));
    assert_eq!(
        table.key_of(at("2025-12-13T08:00:00Z")).as_deref(),
        Some("cron-2025-12-13T08:00:00Z")
    );
}

#[test]
fn a_schedule_outside_the_limits_is_refused() {
    let cron = Schedule::Cron { expression: "every day".into() };
    assert!(matches!(ready(&cron), Err(TimetableError::Cron(_))));
    for period in [Duration::from_millis(999), MAX_PERIOD + Duration::from_millis(1)] {
        let every = Schedule::every(period);
        assert_eq!(ready(&every), Err(TimetableError::Period(period)));
    }
}

proptest! {
    #[test]
    fn no_two_firings_of_a_period_share_an_execution_key(
        ms in 1_000_u64..5_000,
        from_ms in 0_i64..4_000_000_000_000,
    ) {
        let table = every(ms);
        let from = DateTime::from_timestamp_millis(from_ms).unwrap();
        let first = table.next_after(from).unwrap();
        let second = table.next_after(first).unwrap();
        prop_assert!(from < first);
        prop_assert_eq!((second - first).num_milliseconds(), i64::try_from(ms).unwrap());
        prop_assert_ne!(table.key_of(first), table.key_of(second));
    }
}

#[test]
fn the_end_of_representable_time_is_no_panic() {
    assert_eq!(every(1_000).next_after(DateTime::<Utc>::MAX_UTC), None);
}

#[test]
fn a_phase_moves_each_firing_and_is_less_than_the_period() {
    let every = |period, phase| {
        let [period, phase] = [period, phase].map(Duration::from_mins);
        ready(&Schedule::Every { period, phase })
    };
    let table = every(15, 5).unwrap();
    for (from, next) in [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"),
        ("2026-01-01T00:05:00Z", "2026-01-01T00:20:00Z"),
        ("1969-12-31T23:59:00Z", "1970-01-01T00:05:00Z"),
        ("1969-12-31T23:49:00Z", "1969-12-31T23:50:00Z"),
    ] {
        assert_eq!(table.next_after(at(from)), Some(at(next)), "{from}");
    }
    assert!(every(15, 15).is_err());
}

#[test]
fn a_wall_time_is_an_instant_of_the_zone_whatever_the_data_makes_of_it() {
    let vienna = Zone::parse("Europe/Vienna").unwrap();
    for (text, instant) in [
        ("2026-01-01T08:00:00", "2026-01-01T07:00:00Z"),
        ("2026-10-25T02:30:00", "2026-10-25T00:30:00Z"),
        ("2026-03-29T02:30:00", "2026-03-29T01:00:00Z"),
    ] {
        let schedule = Schedule::At { at: Moment::parse(text).unwrap() };
        let table = Timetable::new("a.b", &schedule, vienna, Dst::default(), None).unwrap();
        assert_eq!(table.next_after(DateTime::UNIX_EPOCH), Some(at(instant)));
        assert_eq!(table.key_of(at(instant)), Some(format!("once-{instant}")));
    }
}

#[test]
fn the_first_and_the_last_instant_belong_to_the_terms() {
    let moment = |text: &str| Some(Moment::parse(text).unwrap());
    let constraints = ScheduleConstraints {
        start: moment("2026-01-01T10:00:00Z"),
        end: moment("2026-01-01T12:00:00Z"),
        ..ScheduleConstraints::default()
    };
    let table = every(3_600_000).with_constraints(&constraints, "a.b");
    let firings: Vec<_> = std::iter::successors(table.next_after(DateTime::UNIX_EPOCH), |from| {
        table.next_after(*from)
    })
    .map(|firing| firing.format("%H").to_string())
    .collect();
    assert_eq!(firings, ["10", "11", "12"]);
}

#[test]
fn a_search_passes_over_an_excluded_century_in_a_step() {
    let under = |days: &str| {
        let exclude = Exclusions::from_texts(&[days]).unwrap();
        every(1_000).with_constraints(
            &ScheduleConstraints { exclude, ..ScheduleConstraints::default() },
            "a.b",
        )
    };
    let next = under("2026-01-01..2125-11-30").next_after(at("2025-12-31T23:59:59Z"));
    assert_eq!(next, Some(at("2125-12-01T00:00:00Z")));
    let never = under("2026-01-01..2126-01-01").next_after(at("2025-12-31T23:59:59Z"));
    assert_eq!(never, None, "as far as an expression is looked for that never fires");
}

/// Minutes since 2026-03-25, around a change of the clocks of Vienna.
fn minute(minute: i64) -> DateTime<Utc> {
    at("2026-03-25T00:00:00Z") + TimeDelta::minutes(minute)
}

prop_compose! {
    /// Limits within nine days.
    fn constraints()(
        start in prop::option::of(0_i64..6_000),
        end in prop::option::of(4_000_i64..12_000),
        days in prop::collection::vec((25_u32..34, 0_u64..3), 0..4),
        jitter in prop::option::of(1_u64..7_200),
    ) -> ScheduleConstraints {
        let days = days.into_iter().map(|(day, length)| {
            let first = at("2026-03-01T00:00:00Z").date_naive() + chrono::Days::new(day.into());
            format!("{first}..{}", first + chrono::Days::new(length))
        });
        ScheduleConstraints {
            start: start.map(|start| minute(start).into()),
            end: end.map(|end| minute(end).into()),
            exclude: Exclusions::from_texts(&days.collect::<Vec<_>>()).unwrap(),
            jitter: jitter.map(Duration::from_secs),
            max_runs: None,
        }
    }
}

/// Returns whether a period fires at a minute, by arithmetic, under limits; and whether it would without excluded
/// days.
fn fires(
    minute_of: i64,
    (period, phase): (i64, i64),
    constraints: &ScheduleConstraints,
    zone: Zone,
) -> (bool, bool) {
    let instant = minute(minute_of);
    let there = (instant.timestamp() / 60 - phase).rem_euclid(period) == 0
        && constraints.start.is_none_or(|start| start.instant(zone) <= instant)
        && constraints.end.is_none_or(|end| instant <= end.instant(zone));
    let date = zone.at(instant).date_naive();
    let excluded = constraints.exclude.to_texts().iter().any(|days| {
        let (first, last) = days.split_once("..").unwrap_or((days, days));
        (first.parse().unwrap()..=last.parse().unwrap()).contains(&date)
    });
    (there && !excluded, there && excluded)
}

proptest! {
    #[test]
    fn a_timetable_fires_at_the_minutes_that_a_walk_finds_under_its_terms(
        constraints in constraints(),
        period in 1_i64..3_000,
        phase in 0_i64..3_000,
        zone in prop::sample::select(vec!["UTC", "Europe/Vienna", "Pacific/Apia", "America/Havana"]),
    ) {
        let (zone, phase) = (Zone::parse(zone).unwrap(), phase % period);
        let [minutes, phase_minutes] = [period, phase].map(|m| Duration::from_mins(m as u64));
        let schedule = Schedule::Every { period: minutes, phase: phase_minutes };
        let table = Timetable::new("a.b", &schedule, zone, Dst::default(), None).unwrap();
        let table = table.with_constraints(&constraints, "a.b");
        let walked: Vec<_> = (0..12_500)
            .filter(|minute| fires(*minute, (period, phase), &constraints, zone).0)
            .map(minute)
            .collect();
        let found: Vec<_> =
            std::iter::successors(table.next_after(minute(-1)), |from| table.next_after(*from))
                .take_while(|firing| *firing < minute(12_500))
                .collect();
        prop_assert_eq!(&found, &walked);
        for pair in walked.windows(2) {
            prop_assert!(pair[0] <= table.due(pair[0]) && table.due(pair[0]) < pair[1]);
        }
    }
}
