//! Catch-up that is held, released, and run at a rate.

use chrono::TimeDelta;
use proptest::prelude::*;

use super::properties::{downtimes, misfires, placed, tables, zoned_tables};
use super::*;

#[test]
fn while_catch_up_is_held_late_firings_are_set_aside_and_those_on_time_run() {
    let table = cron("* * * * *");
    let due = PlanInput { held: true, ..due(&table, Misfire::default(), "2026-01-01T00:00:00Z") };
    let plan = plan(&due, at("2026-01-01T03:00:30Z"));
    assert_eq!(
        plan.held,
        Some(Gap {
            first: at("2026-01-01T00:00:00Z"),
            last: at("2026-01-01T02:59:00Z"),
            count: 180,
            reason: GapReason::Held,
        })
    );
    let runs: Vec<_> = plan.firings.iter().map(|firing| firing.scheduled_for).collect();
    assert_eq!(runs, [at("2026-01-01T03:00:00Z")]);
    assert_eq!((plan.gaps.len(), plan.next_fire_at), (0, Some(at("2026-01-01T03:01:00Z"))));
}

#[test]
fn a_catch_up_begins_no_faster_than_its_rate_and_what_is_on_time_does_not_wait() {
    let table = cron("* * * * *");
    let misfire =
        Misfire { rate: "4/m".parse().ok(), ..misfire(MisfirePolicy::FireAll, 86_400, 5) };
    let due = due(&table, misfire, "2026-01-01T00:00:00Z");
    let plan = plan(&due, at("2026-01-01T03:00:30Z"));
    let waits: Vec<_> = plan.firings.iter().map(|firing| firing.after.as_secs()).collect();
    assert_eq!(waits, [0, 15, 30, 45, 60, 0]);
    // The next run continues where the one before ended.
    let (last, held_at) = (at("2026-01-01T00:02:00Z"), at("2026-01-01T00:04:00Z"));
    for (begun, expected) in [(0, [0, 15, 30]), (3, [45, 60, 75])] {
        let plan = release(&due, begun, last, held_at);
        let waits: Vec<_> = plan.firings.iter().map(|firing| firing.after.as_secs()).collect();
        assert_eq!((waits, plan.begins()), (expected.to_vec(), 3));
    }
}

proptest! {
    /// A hold that is released at once changes nothing.
    #[test]
    fn a_hold_that_is_released_changes_nothing_but_the_instant(
        table in prop_oneof![tables(), zoned_tables()],
        misfire in misfires(), downtime in downtimes(), past_us in 0_i64..2_000_000,
    ) {
        let (next_fire_at, now) = placed(&table, downtime);
        let now = now + TimeDelta::microseconds(past_us);
        let due = PlanInput { timetable: &table, overlap: Overlap::Allow, misfire, next_fire_at, under_way: UnderWay::default(), held: false };
        let free = plan(&due, now);
        let held = plan(&PlanInput { held: true, ..due }, now);
        prop_assert_eq!(held.next_fire_at, free.next_fire_at);
        prop_assert_eq!(&held.gaps, &[]);
        let released = held.held.as_ref().map_or_else(Plan::default, |gap| {
            release(&PlanInput { next_fire_at: gap.first, ..due }, 0, gap.last, now)
        });
        prop_assert_eq!(released.gaps, free.gaps);
        let rows: Vec<_> = released.firings.into_iter().chain(held.firings).collect();
        prop_assert_eq!(rows, free.firings);
    }

    /// However often planners wake while it is held, each firing is set aside or claimed once.
    #[test]
    fn a_long_hold_loses_and_doubles_nothing(
        table in tables(), misfire in misfires(), downtime in downtimes(),
        wakeups in prop::collection::vec(0.0_f64..1.0, 0..6),
    ) {
        let (next_fire_at, now) = placed(&table, downtime);
        let mut wakeups: Vec<_> = wakeups.into_iter()
            .map(|part| now - TimeDelta::milliseconds((downtime.1 as f64 * part) as i64))
            .collect();
        wakeups.sort_unstable();
        wakeups.push(now);
        let mut due = PlanInput { timetable: &table, overlap: Overlap::Allow, misfire, next_fire_at, under_way: UnderWay::default(), held: true };
        let mut plans = Vec::new();
        for wake in wakeups {
            let plan = plan(&due, wake);
            due.next_fire_at = plan.next_fire_at.unwrap();
            if let Some(gap) = &plan.held {
                plans.push(release(&PlanInput { next_fire_at: gap.first, ..due }, 0, gap.last, wake));
            }
            plans.push(plan);
        }
        let accounted: Vec<_> =
            ledger(&table, &plans).into_iter().map(|(firing, _)| firing).collect();
        prop_assert_eq!(accounted, nominal(&table, next_fire_at, now));
    }
}
