//! What opens an incident, what does not, and when a monitor looks again.

use std::time::Duration;

use chrono::TimeDelta;

use super::*;
use crate::job::Expectations;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "expectations take it as an option")]
fn seconds(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

fn execution(number: u128, nominal: i64, state: State) -> MonitoredExecution {
    MonitoredExecution {
        // As if of version 7.
        id: Uuid::from_u128((0x7000_u128 << 64) + number),
        nominal: at(nominal),
        state,
        attempt: 1,
        started_at: None,
        finished_at: None,
        error_class: None,
        message: None,
        waits_for_job: false,
        is_published: true,
        is_locked: false,
        is_stale: false,
    }
}

fn running(number: u128, nominal: i64, started: i64) -> MonitoredExecution {
    MonitoredExecution {
        started_at: Some(at(started)),
        ..execution(number, nominal, State::Running)
    }
}

fn ended(number: u128, nominal: i64, state: State, finished: i64) -> MonitoredExecution {
    MonitoredExecution {
        started_at: Some(at(nominal)),
        finished_at: Some(at(finished)),
        ..execution(number, nominal, state)
    }
}

fn job(expectations: Expectations, executions: Vec<MonitoredExecution>) -> MonitoredJob {
    MonitoredJob {
        expectations,
        is_active: true,
        is_deleted: false,
        has_begun: false,
        is_scheduled: true,
        next_firing: Some(NextFiring { nominal: at(86_400), due: at(86_400) }),
        changed_at: at(-100_000),
        planner_seen_at: Some(at(0)),
        executions,
        gaps: Vec::new(),
    }
}

fn success(limit: u64) -> Expectations {
    Expectations { expect_within: seconds(limit), ..Expectations::default() }
}

fn start(limit: u64) -> Expectations {
    Expectations { start_within: seconds(limit), ..Expectations::default() }
}

/// The cause and the number of occurrences that a judgement reports.
fn cause(judged: &Judgement) -> Option<(Cause, u32)> {
    match &judged.change {
        Some(Change::Violated { cause, occurrences, .. }) => Some((*cause, *occurrences)),
        _ => None,
    }
}

fn fresh() -> MonitorMemory {
    MonitorMemory::default()
}

#[test]
fn an_execution_that_has_not_succeeded_in_time_is_missed_once() {
    let before = ended(1, -86_400, State::Succeeded, -86_000);
    let mut daily = job(success(60), vec![before, running(2, 0, 5)]);
    let early = judge(&daily, &fresh(), at(59));
    assert_eq!((cause(&early), early.next_check), (None, Some(at(60))));
    let judged = judge(&daily, &early.memory, at(60));
    assert_eq!(cause(&judged), Some((Cause::Missed, 1)));
    let again = judge(&daily, &judged.memory, at(61));
    assert_eq!(again.change, None, "it counts once");
    assert_eq!(again.memory.violations, 1);

    daily.executions[1] = ended(2, 0, State::Succeeded, 65);
    let judged = judge(&daily, &again.memory, at(66));
    assert!(matches!(judged.change, Some(Change::Recovered { .. })), "{judged:?}");
    assert_eq!((judged.memory.is_open, judged.memory.violations), (false, 0));
    assert_eq!(judged.next_check, Some(at(86_460)), "the next firing's limit");
}

#[test]
fn an_execution_that_waits_is_late_and_says_for_what() {
    let before = ended(1, -60, State::Succeeded, -50);
    let mut waiting = execution(2, 0, State::Pending);
    waiting.waits_for_job = true;
    let judged = judge(&job(start(30), vec![before.clone(), waiting]), &fresh(), at(30));
    let Some(Change::Violated { cause, detail, .. }) = &judged.change else { panic!("{judged:?}") };
    assert_eq!(*cause, Cause::Late);
    assert!(detail.ends_with("it waits for an earlier execution of the job"), "{detail}");
    let begun = job(start(30), vec![before, running(2, 0, 29)]);
    assert_eq!(judge(&begun, &fresh(), at(500)).change, None);
}

#[test]
fn a_job_that_never_began_and_one_whose_lock_is_held_have_causes_of_their_own() {
    let first = job(start(30), vec![execution(1, 0, State::Pending)]);
    assert_eq!(cause(&judge(&first, &fresh(), at(30))), Some((Cause::NeverRan, 1)));
    let mut locked = execution(2, 0, State::Retrying);
    locked.is_locked = true;
    locked.started_at = Some(at(1));
    let held = job(success(30), vec![locked.clone()]);
    assert_eq!(cause(&judge(&held, &fresh(), at(30))), Some((Cause::LockHeld, 1)));
    locked.state = State::Skipped;
    locked.finished_at = Some(at(2));
    let skipped = job(success(30), vec![locked]);
    let judged = judge(&skipped, &fresh(), at(3));
    assert_eq!(cause(&judged), Some((Cause::LockHeld, 1)));
    assert_eq!(judge(&skipped, &judged.memory, at(4)).change, None, "it counts once");
}

#[test]
fn an_attempt_that_runs_too_long_is_found_when_it_does() {
    let runtime = Expectations { max_runtime: seconds(100), ..Expectations::default() };
    let mut long = job(runtime, vec![execution(1, 0, State::Pending)]);
    let judged = judge(&long, &fresh(), at(10));
    assert_eq!(judged.next_check, Some(at(110)), "if it began now");
    long.executions[0] = running(1, 0, 40);
    let judged = judge(&long, &judged.memory, at(110));
    assert_eq!((cause(&judged), judged.next_check), (None, Some(at(140))));
    assert_eq!(cause(&judge(&long, &judged.memory, at(140))), Some((Cause::TooLong, 1)));
}

#[test]
fn failures_in_a_row_are_counted_and_a_success_between_them_ends_the_row() {
    let rules = Expectations { alert_after: Some(2), ..Expectations::default() };
    let first = ended(1, 0, State::Failed, 1);
    let judged = judge(&job(rules.clone(), vec![first.clone()]), &fresh(), at(2));
    assert_eq!((cause(&judged), judged.memory.violations), (None, 1));
    let between =
        [first.clone(), ended(2, 10, State::Succeeded, 11), ended(3, 20, State::Failed, 21)];
    let after = judge(&job(rules.clone(), between.to_vec()), &judged.memory, at(22));
    assert_eq!((cause(&after), after.memory.violations), (None, 1));
    let second = job(rules, vec![first, ended(3, 20, State::Failed, 21)]);
    assert_eq!(cause(&judge(&second, &judged.memory, at(22))), Some((Cause::Failed, 1)));
    let alone = job(Expectations::default(), vec![ended(1, 0, State::Failed, 1)]);
    assert_eq!(cause(&judge(&alone, &fresh(), at(2))), Some((Cause::Parked, 1)));
}

#[test]
fn a_requeued_execution_that_fails_again_counts_again() {
    let mut failed = ended(1, 0, State::Failed, 1);
    let judged = judge(&job(success(10), vec![failed.clone()]), &fresh(), at(2));
    // Requeued long after its limit: the limit is not missed a second time.
    let under_way = running(1, 0, 5_000);
    let requeued = judge(&job(success(10), vec![under_way]), &judged.memory, at(5_001));
    assert_eq!(requeued.change, None);
    (failed.attempt, failed.finished_at) = (2, Some(at(5_002)));
    let again = judge(&job(success(10), vec![failed]), &requeued.memory, at(5_003));
    assert_eq!(cause(&again), Some((Cause::Parked, 1)));
    // One that missed a limit and then fails is one violation.
    let late = judge(&job(success(10), vec![running(1, 0, 5)]), &fresh(), at(10));
    let fails =
        judge(&job(success(10), vec![ended(1, 0, State::Failed, 50)]), &late.memory, at(51));
    assert_eq!((fails.change, fails.memory.violations), (None, 1));
}

#[test]
fn an_execution_that_ran_too_long_and_fails_after_the_incident_is_over_is_an_incident_again() {
    let late = judge(&job(success(10), vec![running(1, 0, 5)]), &fresh(), at(10));
    let other = ended(2, 12, State::Succeeded, 15);
    let over =
        judge(&job(success(10), vec![running(1, 0, 5), other.clone()]), &late.memory, at(16));
    assert!(matches!(over.change, Some(Change::Recovered { .. })), "{over:?}");
    let fails = [ended(1, 0, State::Failed, 50), other];
    let judged = judge(&job(success(10), fails.to_vec()), &over.memory, at(51));
    assert_eq!(cause(&judged), Some((Cause::Parked, 1)));
    assert_eq!(judge(&job(success(10), fails.to_vec()), &judged.memory, at(52)).change, None);
}

#[test]
fn a_firing_that_was_unclaimed_and_is_claimed_late_counts_once() {
    let mut due = job(start(30), vec![ended(1, -60, State::Succeeded, -50)]);
    due.next_firing = Some(NextFiring { nominal: at(0), due: at(0) });
    due.planner_seen_at = Some(at(101));
    let unclaimed = judge(&due, &fresh(), at(102));
    assert_eq!(cause(&unclaimed), Some((Cause::Missed, 1)));
    due.next_firing = Some(NextFiring { nominal: at(600), due: at(600) });
    due.executions.push(execution(2, 0, State::Pending));
    let claimed = judge(&due, &unclaimed.memory, at(103));
    assert_eq!((claimed.change, claimed.memory.violations), (None, 1));
    // Or it is recorded as missed, with four others.
    due.executions.pop();
    due.gaps = with_gap(GapReason::OutsideWindow).gaps;
    let missed = judge(&due, &unclaimed.memory, at(103));
    assert_eq!(cause(&missed), Some((Cause::Missed, 4)));
}

#[test]
fn recovery_takes_as_many_successes_as_the_job_says() {
    let rules = Expectations { recover_after: Some(2), ..Expectations::default() };
    let failed = ended(1, 0, State::Failed, 1);
    let open = judge(&job(rules.clone(), vec![failed.clone()]), &fresh(), at(2));
    let one = [failed.clone(), ended(2, 10, State::Succeeded, 11)];
    let judged = judge(&job(rules.clone(), one.to_vec()), &open.memory, at(12));
    assert_eq!(judged.change, None);
    let two = [failed, ended(2, 10, State::Succeeded, 11), ended(3, 20, State::Succeeded, 21)];
    let judged = judge(&job(rules, two.to_vec()), &judged.memory, at(22));
    assert!(matches!(judged.change, Some(Change::Recovered { .. })));
}

#[test]
fn what_a_person_or_a_policy_keeps_from_running_is_no_violation() {
    for reason in [
        GapReason::Paused,
        GapReason::Excluded,
        GapReason::Held,
        GapReason::Rescheduled,
        GapReason::PastEnd,
        GapReason::Deleted,
        GapReason::Coalesced,
    ] {
        assert_eq!(cause(&judge(&with_gap(reason), &fresh(), at(10))), None, "{reason:?}");
    }
    for state in [State::Cancelled, State::Skipped, State::Discarded] {
        let over = job(success(10), vec![ended(1, 0, state, 1)]);
        assert_eq!(judge(&over, &fresh(), at(500)).change, None, "{state:?}");
    }
    let mut paused = job(success(10), vec![]);
    (paused.is_active, paused.planner_seen_at) = (false, Some(at(90_000)));
    assert_eq!(judge(&paused, &fresh(), at(90_000)).change, None);
}

fn with_gap(reason: GapReason) -> MonitoredJob {
    let gap = MonitoredGap {
        id: 7,
        first: at(0),
        last: at(4),
        count: 5,
        reason: Some(reason),
        recorded_at: at(9),
    };
    MonitoredJob { gaps: vec![gap], ..job(success(10), vec![]) }
}

#[test]
fn what_an_absence_of_all_schedulers_has_missed_is_one_violation_with_its_number() {
    let judged = judge(&with_gap(GapReason::OutsideWindow), &fresh(), at(10));
    let Some(Change::Violated { cause, detail, occurrences, .. }) = &judged.change else {
        panic!()
    };
    assert_eq!((*cause, *occurrences, judged.memory.gaps_seen), (Cause::Missed, 5, 7));
    assert!(detail.starts_with("5 firings from "), "{detail}");
    let without_limit = MonitoredJob {
        expectations: Expectations::default(),
        ..with_gap(GapReason::OutsideWindow)
    };
    assert_eq!(judge(&without_limit, &fresh(), at(10)).change, None, "nobody expects them");
}

#[test]
fn a_due_firing_that_no_scheduler_claims_is_missed_once_a_planner_has_looked() {
    let mut due = job(start(30), vec![ended(1, -60, State::Succeeded, -50)]);
    due.next_firing = Some(NextFiring { nominal: at(0), due: at(0) });
    due.planner_seen_at = Some(at(20));
    let waiting = judge(&due, &fresh(), at(100));
    assert_eq!(waiting.change, None, "all schedulers were away, and none has looked since");
    assert_eq!(waiting.next_check, Some(at(115)));
    due.planner_seen_at = Some(at(101));
    let judged = judge(&due, &waiting.memory, at(102));
    assert_eq!(cause(&judged), Some((Cause::Missed, 1)));
    assert_eq!(judge(&due, &judged.memory, at(120)).change, None, "it counts once");
}

#[test]
fn a_job_that_can_never_fire_is_found_a_minute_after_it_was_defined() {
    let mut never = job(Expectations::default(), vec![]);
    (never.next_firing, never.changed_at) = (None, at(0));
    let judged = judge(&never, &fresh(), at(1));
    assert_eq!((judged.change.clone(), judged.next_check), (None, Some(at(61))));
    let judged = judge(&never, &judged.memory, at(61));
    assert_eq!(cause(&judged), Some((Cause::NeverRan, 1)));
    never.is_scheduled = false;
    assert_eq!(judge(&never, &fresh(), at(61)).change, None, "it waits for triggers");
}

#[test]
fn the_memory_is_bounded_and_a_deleted_job_has_no_incident() {
    let failed = (1..=700).map(|number| ended(number, 0, State::Failed, 1)).collect();
    let many = job(Expectations::default(), failed);
    let judged = judge(&many, &fresh(), at(2));
    assert_eq!(cause(&judged), Some((Cause::Parked, 700)));
    assert_eq!(judged.memory.counted.len(), MAX_COUNTED);
    let deleted = MonitoredJob { is_deleted: true, ..many };
    let judged = judge(&deleted, &judged.memory, at(3));
    assert!(matches!(judged.change, Some(Change::Recovered { .. })));
    assert_eq!(judged.next_check, None);
}

#[test]
fn an_open_incident_is_looked_at_less_often_the_older_it_is() {
    let failed = job(Expectations::default(), vec![ended(1, 0, State::Failed, 0)]);
    let mut memory = judge(&failed, &fresh(), at(0)).memory;
    for (now, pause) in [(1, 5), (200, 10), (100_000, 300)] {
        let judged = judge(&failed, &memory, at(now));
        assert_eq!(judged.next_check, Some(at(now) + TimeDelta::seconds(pause)));
        memory = judged.memory;
    }
}
