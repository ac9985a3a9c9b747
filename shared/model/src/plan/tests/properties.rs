//! The plan over random zones, schedules, policies and downtimes.

use chrono::TimeDelta;
use proptest::prelude::*;

use super::*;
use crate::cron::DayRule;

prop_compose! {
    pub(super) fn tables()(kind in 0_usize..6, ms in 1_000_u64..400_000) -> Timetable {
        match kind {
            0 | 1 => every(ms),
            2 => cron("* * * * *"),
            3 => cron("*/7 9-17 * * MON-FRI"),
            4 => cron("*/5 * * * * *"),
            _ => cron("59 23 28 2 *"),
        }
    }
}

prop_compose! {
    /// In zones whose clocks change, from expressions that fire about then.
    pub(super) fn zoned_tables()(
        zone in prop::sample::select(&[
            "Europe/Vienna", "America/New_York", "America/Havana", "Asia/Beirut", "Pacific/Apia",
            "Australia/Lord_Howe", "Africa/Casablanca", "Antarctica/Troll",
        ][..]),
        text in prop::sample::select(&[
            "30 2 * * *", "*/20 * * * *", "0,30 0-3 * * *", "15 */2 * * *", "*/10 * 2 * * *",
            "5 1 * * SUN", "0 * * * *", "1-59/2 0,2 L * *", "*/30 0-3 8-31 * SUN", "15 2 1-7,20-31 * SUN,WED",
        ][..]),
        dst in prop::sample::select(&[Dst::Vixie, Dst::Skip, Dst::Wall][..]),
        days in prop::sample::select(&[None, Some(DayRule::Both), Some(DayRule::Either)][..]),
    ) -> Timetable {
        let schedule = Schedule::Cron { expression: text.to_owned() };
        Timetable::new("a.b", &schedule, Zone::parse(zone).unwrap(), dst, days).unwrap()
    }
}

prop_compose! {
    pub(super) fn misfires()(
        policy in 0_usize..3,
        window_s in prop_oneof![1_u64..90, 1_u64..100_000],
        limit in 1_u32..200,
    ) -> Misfire {
        let policies = [MisfirePolicy::Skip, MisfirePolicy::FireOnce, MisfirePolicy::FireAll];
        misfire(policies[policy], window_s, limit)
    }
}

/// A downtime: the cursor before it, and the time after it.
pub(super) fn downtimes() -> impl Strategy<Value = (i64, i64)> {
    let length_ms = prop_oneof![0_i64..120_000, 0_i64..30_000_000, 0_i64..40_000_000];
    (1_700_000_000_000_i64..1_900_000_000_000, length_ms)
}

/// Returns the first firing after `start_ms`, and `length_ms` after it.
pub(super) fn placed(
    table: &Timetable,
    (start_ms, length_ms): (i64, i64),
) -> (DateTime<Utc>, DateTime<Utc>) {
    let first = table.next_after(DateTime::from_timestamp_millis(start_ms).unwrap()).unwrap();
    (first, first + TimeDelta::milliseconds(length_ms))
}

proptest! {
    #[test]
    fn every_nominal_firing_has_exactly_one_disposition(
        table in tables(), misfire in misfires(), downtime in downtimes(),
        overlap in 0_usize..4, busy in any::<bool>(),
    ) {
        let (next_fire_at, now) = placed(&table, downtime);
        let overlap = [Overlap::Allow, Overlap::Skip, Overlap::Queue, Overlap::Replace][overlap];
        let under_way = UnderWay { running: busy, ..UnderWay::default() };
        let due = PlanInput { timetable: &table, overlap, misfire, next_fire_at, under_way, held: false };
        let accounted: Vec<_> =
            ledger(&table, &[plan(&due, now)]).into_iter().map(|(firing, _)| firing).collect();
        prop_assert_eq!(accounted, nominal(&table, next_fire_at, now));
    }

    #[test]
    fn planning_twice_plans_nothing_new(
        table in tables(), misfire in misfires(), downtime in downtimes(),
    ) {
        let (next_fire_at, now) = placed(&table, downtime);
        let due = PlanInput { timetable: &table, overlap: Overlap::Allow, misfire, next_fire_at, under_way: UnderWay::default(), held: false };
        let cursor = plan(&due, now).next_fire_at;
        if let Some(next_fire_at) = cursor {
            let again = plan(&PlanInput { next_fire_at, ..due }, now);
            prop_assert_eq!(again, Plan { next_fire_at: cursor, ..Plan::default() });
        }
    }

    #[test]
    fn a_planner_that_wakes_in_between_accounts_for_the_same_firings(
        table in tables(), misfire in misfires(), downtime in downtimes(),
        wakeups in prop::collection::vec(0.0_f64..1.0, 0..6),
    ) {
        let (next_fire_at, now) = placed(&table, downtime);
        let mut wakeups: Vec<_> = wakeups.into_iter()
            .map(|part| now - TimeDelta::milliseconds((downtime.1 as f64 * part) as i64))
            .collect();
        wakeups.sort_unstable();
        wakeups.push(now);
        let mut due = PlanInput { timetable: &table, overlap: Overlap::Allow, misfire, next_fire_at, under_way: UnderWay::default(), held: false };
        let mut accounted = Vec::new();
        for wake in wakeups {
            let plan = plan(&due, wake);
            due.next_fire_at = plan.next_fire_at.unwrap();
            accounted.extend(ledger(&table, &[plan]).into_iter().map(|(firing, _)| firing));
        }
        prop_assert_eq!(accounted, nominal(&table, next_fire_at, now));
    }

    #[test]
    fn late_firings_run_only_as_the_policy_allows_and_on_time_ones_always(
        table in tables(), misfire in misfires(), downtime in downtimes(),
    ) {
        let (next_fire_at, now) = placed(&table, downtime);
        let due = PlanInput { timetable: &table, overlap: Overlap::Allow, misfire, next_fire_at, under_way: UnderWay::default(), held: false };
        let ledger = ledger(&table, &[plan(&due, now)]);
        let age = |firing: DateTime<Utc>| (now - firing).to_std().unwrap();
        let (late, on_time): (Vec<_>, Vec<_>) =
            ledger.into_iter().partition(|(firing, _)| age(*firing) > Misfire::ON_TIME_GRACE);
        prop_assert!(on_time.iter().all(|(_, became)| *became == "run"));
        let run: Vec<_> = late.iter().filter(|(_, became)| *became == "run").collect();
        prop_assert!(run.iter().all(|(firing, _)| age(*firing) <= misfire.window));
        let in_window = late.iter().filter(|(firing, _)| age(*firing) <= misfire.window).count();
        let expected = match misfire.policy {
            MisfirePolicy::FireOnce if on_time.is_empty() => in_window.min(1),
            MisfirePolicy::Skip | MisfirePolicy::FireOnce => 0,
            MisfirePolicy::FireAll => in_window.min(misfire.limit as usize),
        };
        prop_assert_eq!(run.len(), expected);
        // Those that run are the newest of the late ones.
        prop_assert!(late.iter().rev().take(expected).all(|(_, became)| *became == "run"));
    }

    #[test]
    fn no_two_firings_of_a_plan_share_an_execution_key(
        table in tables(), misfire in misfires(), downtime in downtimes(),
    ) {
        let (next_fire_at, now) = placed(&table, downtime);
        let due = PlanInput { timetable: &table, overlap: Overlap::Allow, misfire, next_fire_at, under_way: UnderWay::default(), held: false };
        let plan = plan(&due, now);
        let keys: std::collections::HashSet<_> = plan.firings.iter().map(|firing| &firing.key).collect();
        prop_assert_eq!(keys.len(), plan.firings.len());
    }

    #[test]
    fn the_plan_is_what_visiting_every_firing_would_decide(
        table in prop_oneof![2 => tables(), 3 => zoned_tables()],
        misfire in misfires(), downtime in downtimes(),
        (aside_us, past_us) in (prop_oneof![3 => Just(0_i64), 1 => 0_i64..60_000_000], 0_i64..2_000_000),
        overlap in 0_usize..4, busy in any::<bool>(),
    ) {
        let (first, now) = placed(&table, downtime);
        // A cursor that was set by hand is on no firing, and no clock ticks in whole seconds.
        let next_fire_at = first + TimeDelta::microseconds(aside_us);
        let now = now + TimeDelta::microseconds(past_us);
        let overlap = [Overlap::Allow, Overlap::Skip, Overlap::Queue, Overlap::Replace][overlap];
        let under_way = UnderWay { running: busy, ..UnderWay::default() };
        let due = PlanInput { timetable: &table, overlap, misfire, next_fire_at, under_way, held: false };
        prop_assert_eq!(plan(&due, now), enumerated::plan(&due, now), "{:?} {:?}", due, now);
    }
}
