//! The plan as a table of cases; `properties` tests it over random schedules, policies and downtimes.

mod constraints;
mod enumerated;
mod held;
mod overlaps;
mod properties;
mod steps;

use super::*;
use crate::cron::Dst;
use crate::job::Schedule;
use crate::zone::Zone;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn ready(schedule: &Schedule) -> Timetable {
    Timetable::new("a.b", schedule, Zone::UTC, Dst::default(), None).unwrap()
}

fn every(ms: u64) -> Timetable {
    ready(&Schedule::every(Duration::from_millis(ms)))
}

fn cron(expression: &str) -> Timetable {
    ready(&Schedule::Cron { expression: expression.to_owned() })
}

fn misfire(policy: MisfirePolicy, window_s: u64, limit: u32) -> Misfire {
    Misfire { policy, window: Duration::from_secs(window_s), limit, rate: None }
}

fn due<'a>(timetable: &'a Timetable, misfire: Misfire, next_fire_at: &str) -> PlanInput<'a> {
    PlanInput {
        timetable,
        overlap: Overlap::Allow,
        misfire,
        next_fire_at: at(next_fire_at),
        under_way: UnderWay::default(),
        held: false,
    }
}

fn nominal(timetable: &Timetable, first: DateTime<Utc>, now: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    std::iter::successors(Some(first), |from| timetable.next_after(*from))
        .take_while(|firing| *firing <= now)
        .collect()
}

/// Returns each firing of `plans` with its disposition, in the order of the plans; gaps spelled out.
fn ledger(timetable: &Timetable, plans: &[Plan]) -> Vec<(DateTime<Utc>, &'static str)> {
    let mut out = Vec::new();
    for plan in plans {
        for gap in &plan.gaps {
            let firings = nominal(timetable, gap.first, gap.last);
            assert_eq!(firings.len(), gap.count as usize, "the count of a gap is exact");
            assert_eq!(firings.last(), Some(&gap.last));
            out.extend(firings.into_iter().map(|firing| (firing, gap.reason.as_str())));
        }
        out.extend(plan.firings.iter().map(|firing| match firing.disposition {
            Disposition::Run => (firing.scheduled_for, "run"),
            Disposition::Waits(why) => (firing.scheduled_for, why.as_str()),
            Disposition::Skipped(reason) => (firing.scheduled_for, reason.as_str()),
        }));
    }
    out
}

#[test]
fn a_firing_that_is_due_now_runs_and_the_cursor_moves_on() {
    let table = cron("0 8 * * *");
    let due = due(&table, Misfire::default(), "2025-12-12T08:00:00Z");
    let plan = plan(&due, at("2025-12-12T08:00:00.004Z"));
    assert_eq!(
        plan,
        Plan {
            firings: vec![Firing {
                scheduled_for: at("2025-12-12T08:00:00Z"),
                key: "cron-2025-12-12T08:00:00Z".into(),
                disposition: Disposition::Run,
                after: Duration::ZERO,
            }],
            gaps: vec![],
            held: None,
            next_fire_at: Some(at("2025-12-13T08:00:00Z")),
        }
    );
}

#[test]
fn nothing_is_planned_before_its_time() {
    let table = every(60_000);
    let due = due(&table, Misfire::default(), "2026-01-01T00:01:00Z");
    let plan = plan(&due, at("2026-01-01T00:00:59.999Z"));
    assert_eq!(plan, Plan { next_fire_at: Some(due.next_fire_at), ..Plan::default() });
}

#[test]
fn a_job_that_fires_once_has_no_cursor_afterwards() {
    let table = ready(&Schedule::At { at: at("2026-01-01T00:00:00Z").into() });
    let due = due(&table, Misfire::default(), "2026-01-01T00:00:00Z");
    let plan = plan(&due, at("2026-01-01T01:00:00Z"));
    assert_eq!(ledger(&table, std::slice::from_ref(&plan)), [(due.next_fire_at, "run")]);
    assert_eq!(plan.next_fire_at, None);
}

#[test]
fn a_cursor_left_on_a_job_without_a_schedule_plans_nothing() {
    let table = ready(&Schedule::None);
    let due = due(&table, Misfire::default(), "2026-01-01T00:00:00Z");
    assert_eq!(plan(&due, at("2026-01-02T00:00:00Z")), Plan::default());
}

#[test]
fn sixty_seconds_late_is_on_time_and_a_millisecond_more_is_late() {
    let table = cron("0 0 1 1 *");
    let due = due(&table, misfire(MisfirePolicy::Skip, 3_600, 1), "2026-01-01T00:00:00Z");
    for (now, became) in
        [("2026-01-01T00:01:00Z", "run"), ("2026-01-01T00:01:00.001Z", "misfire_skip")]
    {
        assert_eq!(ledger(&table, &[plan(&due, at(now))]), [(due.next_fire_at, became)], "{now}");
    }
}

#[test]
fn each_policy_treats_a_downtime_of_hourly_firings_its_own_way() {
    use MisfirePolicy::{FireAll, FireOnce, Skip};
    let table = cron("0 * * * *");
    // Firings at 00:00 to 04:00; 00:00 is outside a window of four hours.
    for (now, policy, became) in [
        (
            "04:00:30",
            Skip,
            ["outside_window", "misfire_skip", "misfire_skip", "misfire_skip", "run"],
        ),
        ("04:00:30", FireOnce, ["outside_window", "coalesced", "coalesced", "coalesced", "run"]),
        ("04:00:30", FireAll, ["outside_window", "over_limit", "run", "run", "run"]),
        (
            "04:30:00",
            Skip,
            ["outside_window", "misfire_skip", "misfire_skip", "misfire_skip", "misfire_skip"],
        ),
        ("04:30:00", FireOnce, ["outside_window", "coalesced", "coalesced", "coalesced", "run"]),
        ("04:30:00", FireAll, ["outside_window", "over_limit", "over_limit", "run", "run"]),
    ] {
        let due = due(&table, misfire(policy, 4 * 3_600, 2), "2026-01-01T00:00:00Z");
        let plan = plan(&due, at(&format!("2026-01-01T{now}Z")));
        let ledger: Vec<_> =
            ledger(&table, &[plan]).into_iter().map(|(_, became)| became).collect();
        assert_eq!(ledger, became, "{policy:?} at {now}");
    }
}

#[test]
fn nothing_late_runs_when_even_the_newest_is_outside_the_window() {
    let table = cron("0 0 * * *");
    for policy in [MisfirePolicy::FireOnce, MisfirePolicy::FireAll] {
        let due = due(&table, misfire(policy, 3_600, 10), "2026-01-01T00:00:00Z");
        let plan = plan(&due, at("2026-01-03T12:00:00Z"));
        assert_eq!(plan.firings, []);
        assert_eq!(
            plan.gaps,
            [Gap {
                first: at("2026-01-01T00:00:00Z"),
                last: at("2026-01-03T00:00:00Z"),
                count: 3,
                reason: GapReason::OutsideWindow,
            }]
        );
    }
}

#[test]
fn what_passed_while_a_job_was_paused_is_one_gap() {
    let table = cron("0 * * * *");
    let plan = plan_as_gap(
        &table,
        at("2026-01-01T00:00:00Z"),
        at("2026-01-01T02:30:00Z"),
        GapReason::Paused,
    );
    assert_eq!(plan.firings, []);
    assert_eq!(plan.gaps.len(), 1);
    assert_eq!((plan.gaps[0].count, plan.gaps[0].reason), (3, GapReason::Paused));
    assert_eq!(plan.next_fire_at, Some(at("2026-01-01T03:00:00Z")));
}
