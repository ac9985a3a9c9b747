//! The plan as a table of cases and as properties over random schedules, policies and downtimes.

mod overlaps;

use chrono::TimeDelta;
use proptest::prelude::*;

use super::*;
use crate::cron::Dst;
use crate::zone::Zone;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn ready(schedule: &Schedule) -> Timetable {
    Timetable::new("a.b", schedule, Zone::UTC, Dst::default()).unwrap()
}

fn every(ms: u64) -> Timetable {
    ready(&Schedule::Every { period: Duration::from_millis(ms) })
}

fn cron(expression: &str) -> Timetable {
    ready(&Schedule::Cron { expression: expression.to_owned() })
}

fn misfire(policy: MisfirePolicy, window_s: u64, limit: u32) -> Misfire {
    Misfire { policy, window: Duration::from_secs(window_s), limit }
}

fn due<'a>(timetable: &'a Timetable, misfire: Misfire, next_fire_at: &str) -> Due<'a> {
    Due {
        timetable,
        overlap: Overlap::Allow,
        misfire,
        next_fire_at: at(next_fire_at),
        under_way: UnderWay::default(),
    }
}

fn nominal(timetable: &Timetable, first: DateTime<Utc>, now: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    std::iter::successors(Some(first), |from| timetable.next_after(*from))
        .take_while(|firing| *firing <= now)
        .collect()
}

/// Each firing of `plans` with what became of it, in the order of the plans; gaps spelled out.
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

/// Plans until the cursor is past `now`, as a planner does.
fn plan_through(due: &Due<'_>, now: DateTime<Utc>, most: usize) -> Vec<Plan> {
    let mut plans = vec![plan_at_most(due, now, most)];
    let mut cursor = due.next_fire_at;
    while let Some(next_fire_at) = plans.last().unwrap().next_fire_at.filter(|next| *next <= now) {
        assert!(next_fire_at > cursor, "a cut plan must get on");
        cursor = next_fire_at;
        plans.push(plan_at_most(&Due { next_fire_at, ..*due }, now, most));
    }
    plans
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
            }],
            gaps: vec![],
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
    let table = ready(&Schedule::At { at: at("2026-01-01T00:00:00Z") });
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
fn a_month_of_missed_seconds_is_planned_in_bounded_stretches_of_which_the_last_runs() {
    let table = every(1_000);
    let due = due(&table, misfire(MisfirePolicy::FireOnce, 86_400, 1), "2026-01-01T00:00:00Z");
    let now = at("2026-01-31T00:00:00Z");
    let mut counted = 0;
    let mut cursor = due.next_fire_at;
    while cursor <= now {
        let plan = plan(&Due { next_fire_at: cursor, ..due }, now);
        let gaps: u32 = plan.gaps.iter().map(|gap| gap.count).sum();
        assert!(gaps as usize + plan.firings.len() <= MAX_LOOKED_AT);
        counted += gaps as usize + plan.firings.len();
        cursor = plan.next_fire_at.unwrap();
        if cursor <= now {
            assert_eq!(plan.firings, [], "an early stretch runs nothing");
        } else {
            assert_eq!(plan.firings.len(), MAX_ON_TIME, "the last one runs what is on time");
        }
    }
    assert_eq!(counted, 30 * 86_400 + 1);
}

#[test]
fn what_passed_while_a_job_was_paused_is_one_gap() {
    let table = cron("0 * * * *");
    let plan = pass_over(
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

prop_compose! {
    fn tables()(kind in 0_usize..6, ms in 1_000_u64..400_000) -> Timetable {
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
    fn misfires()(
        policy in 0_usize..3,
        window_s in prop_oneof![1_u64..90, 1_u64..100_000],
        limit in 1_u32..200,
    ) -> Misfire {
        let policies = [MisfirePolicy::Skip, MisfirePolicy::FireOnce, MisfirePolicy::FireAll];
        misfire(policies[policy], window_s, limit)
    }
}

/// A downtime: where the cursor stood, and what time it is now.
fn downtimes() -> impl Strategy<Value = (i64, i64)> {
    let length_ms = prop_oneof![0_i64..120_000, 0_i64..30_000_000];
    (1_700_000_000_000_i64..1_900_000_000_000, length_ms)
}

/// The first firing after `start_ms`, and `length_ms` after it.
fn placed(table: &Timetable, (start_ms, length_ms): (i64, i64)) -> (DateTime<Utc>, DateTime<Utc>) {
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
        let due = Due { timetable: &table, overlap, misfire, next_fire_at, under_way };
        let plans = plan_through(&due, now, MAX_LOOKED_AT);
        let accounted: Vec<_> =
            ledger(&table, &plans).into_iter().map(|(firing, _)| firing).collect();
        prop_assert_eq!(accounted, nominal(&table, next_fire_at, now));
    }

    #[test]
    fn planning_twice_plans_nothing_new(
        table in tables(), misfire in misfires(), downtime in downtimes(),
    ) {
        let (next_fire_at, now) = placed(&table, downtime);
        let due = Due { timetable: &table, overlap: Overlap::Allow, misfire, next_fire_at, under_way: UnderWay::default() };
        let cursor = plan_through(&due, now, MAX_LOOKED_AT).last().unwrap().next_fire_at;
        if let Some(next_fire_at) = cursor {
            let again = plan(&Due { next_fire_at, ..due }, now);
            prop_assert_eq!(again, Plan { next_fire_at: cursor, ..Plan::default() });
        }
    }

    #[test]
    fn stretches_decide_what_one_plan_would_have(
        table in tables(), misfire in misfires(), downtime in downtimes(), most in 1_usize..2_000,
    ) {
        let (next_fire_at, now) = placed(&table, downtime);
        let due = Due { timetable: &table, overlap: Overlap::Allow, misfire, next_fire_at, under_way: UnderWay::default() };
        prop_assert_eq!(
            ledger(&table, &plan_through(&due, now, most)),
            ledger(&table, &plan_through(&due, now, usize::MAX))
        );
    }

    #[test]
    fn a_cut_close_to_the_newest_firings_changes_nothing(
        ms in prop_oneof![1_000_u64..5_000, 50_000_u64..70_000],
        past_ms in prop_oneof![Just(0_i64), 0_i64..1_000],
        (count, spare) in (130_i64..900, 1_i64..100),
        misfire in misfires(),
    ) {
        let table = every(ms);
        let length_ms = (count - 1) * i64::try_from(ms).unwrap() + past_ms;
        let (next_fire_at, now) = placed(&table, (1_700_000_000_000, length_ms));
        let due = Due { timetable: &table, overlap: Overlap::Allow, misfire, next_fire_at, under_way: UnderWay::default() };
        let most = usize::try_from(count - spare).unwrap();
        prop_assert_eq!(
            ledger(&table, &plan_through(&due, now, most)),
            ledger(&table, &plan_through(&due, now, usize::MAX))
        );
    }

    #[test]
    fn a_planner_that_wakes_in_between_accounts_for_the_same_firings(
        table in tables(), misfire in misfires(), downtime in downtimes(),
        wakes in prop::collection::vec(0.0_f64..1.0, 0..6),
    ) {
        let (next_fire_at, now) = placed(&table, downtime);
        let mut wakes: Vec<_> = wakes.into_iter()
            .map(|part| now - TimeDelta::milliseconds((downtime.1 as f64 * part) as i64))
            .collect();
        wakes.sort_unstable();
        wakes.push(now);
        let mut due = Due { timetable: &table, overlap: Overlap::Allow, misfire, next_fire_at, under_way: UnderWay::default() };
        let mut accounted = Vec::new();
        for wake in wakes {
            let plans = plan_through(&due, wake, MAX_LOOKED_AT);
            accounted.extend(ledger(&table, &plans).into_iter().map(|(firing, _)| firing));
            due.next_fire_at = plans.last().unwrap().next_fire_at.unwrap();
        }
        prop_assert_eq!(accounted, nominal(&table, next_fire_at, now));
    }

    #[test]
    fn late_firings_run_only_as_the_policy_allows_and_on_time_ones_always(
        table in tables(), misfire in misfires(), downtime in downtimes(),
    ) {
        let (next_fire_at, now) = placed(&table, downtime);
        let due = Due { timetable: &table, overlap: Overlap::Allow, misfire, next_fire_at, under_way: UnderWay::default() };
        let ledger = ledger(&table, &plan_through(&due, now, MAX_LOOKED_AT));
        let age = |firing: DateTime<Utc>| (now - firing).to_std().unwrap();
        let (late, on_time): (Vec<_>, Vec<_>) =
            ledger.into_iter().partition(|(firing, _)| age(*firing) > Misfire::ON_TIME);
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
        let due = Due { timetable: &table, overlap: Overlap::Allow, misfire, next_fire_at, under_way: UnderWay::default() };
        let plan = plan(&due, now);
        let keys: std::collections::HashSet<_> = plan.firings.iter().map(|firing| &firing.key).collect();
        prop_assert_eq!(keys.len(), plan.firings.len());
    }
}
