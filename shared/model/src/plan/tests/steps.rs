//! The cost of a plan, in steps: the same on every machine.

use super::*;
use crate::steps::count_steps;

/// Plans a year of absence of a job; returns the steps and the plan.
fn year(table: &Timetable, misfire: Misfire) -> (u64, Plan) {
    let (from, now) = (at("2025-03-20T12:34:56Z"), at("2026-03-20T12:34:56.789Z"));
    let next_fire_at = table.next_after(from).unwrap();
    let due = PlanInput {
        timetable: table,
        overlap: Overlap::Allow,
        misfire,
        next_fire_at,
        under_way: UnderWay::default(),
        held: false,
    };
    count_steps(|| plan(&due, now))
}

fn accounted(plan: &Plan) -> u64 {
    plan.gaps.iter().map(|gap| u64::from(gap.count)).sum::<u64>() + plan.firings.len() as u64
}

#[test]
fn planning_a_year_of_missed_minutes_or_seconds_is_bounded_by_the_limit() {
    let vienna = |expression: &str| {
        let schedule = Schedule::Cron { expression: expression.to_owned() };
        Timetable::new("a.b", &schedule, Zone::parse("Europe/Vienna").unwrap(), Dst::Vixie, None)
            .unwrap()
    };
    for (table, missed) in [
        (cron("* * * * *"), 525_600),
        (vienna("* * * * *"), 525_600),
        (cron("* * * * * *"), 31_536_000),
        (vienna("* * * * * *"), 31_536_000),
        (every(60_000), 525_600),
        (every(1_000), 31_536_000),
    ] {
        for (policy, limit) in [
            (MisfirePolicy::Skip, 1),
            (MisfirePolicy::FireOnce, 1),
            (MisfirePolicy::FireAll, 100),
            (MisfirePolicy::FireAll, 1_000),
        ] {
            for window_s in [3_600, 366 * 86_400] {
                let (steps, plan) = year(&table, misfire(policy, window_s, limit));
                let case = format!("{policy:?} {limit} in {window_s} s: {:?}", table.schedule());
                assert_eq!(accounted(&plan), missed, "{case}");
                let rows = plan.firings.len() as u64;
                assert!(rows <= u64::from(limit) + 61, "{rows} rows: {case}");
                // A firing that gets a row costs a few reads of the zone's data.
                assert!(steps < 3_000 + 8 * rows, "{steps} steps, {rows} rows: {case}");
            }
        }
    }
}

#[test]
fn a_pause_of_a_century_is_counted_and_not_visited() {
    let table = cron("* * * * * *");
    let (from, now) = (at("1970-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"));
    let (steps, plan) = count_steps(|| plan_as_gap(&table, from, now, GapReason::Paused));
    let seconds = (now - from).num_seconds() + 1;
    assert_eq!(i64::from(plan.gaps[0].count), seconds);
    assert!(steps < 40_000, "{steps}");
    let (from, now) = (at("1926-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"));
    let plan = plan_as_gap(&table, from, now, GapReason::Paused);
    assert_eq!(plan.gaps[0].count, Gap::MAX_COUNT, "no column holds more");
    assert_eq!(plan.gaps[0].last, now);
}
