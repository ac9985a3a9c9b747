//! Judges a monitor.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::next_check::next_check;
use super::settle::{Limits, Tally, Violation, settle};
use super::{
    Cause, Change, Counted, Judgement, MAX_COUNTED, MonitorMemory, MonitoredExecution,
    MonitoredGap, MonitoredJob, sentences,
};
use crate::plan::GapReason;
use crate::state::State;

/// How long after the deadline of a firing a planner must have looked, so that it counts as unclaimed.
const PLANNER_GRACE: TimeDelta = TimeDelta::seconds(10);
/// How long after its definition a job that never fires is noticed, and until when.
const NEVER_FIRES: (TimeDelta, TimeDelta) = (TimeDelta::minutes(1), TimeDelta::days(1));

/// How long a skipped execution is remembered, and counts if it was not counted before.
const SKIPPED_MATTERS: TimeDelta = TimeDelta::days(1);

/// How long it is remembered that a firing counted as unclaimed.
const MARK_MATTERS: TimeDelta = TimeDelta::days(7);

/// Judges a job's monitor at `now`. Repeated with what it returned, it finds nothing new.
pub fn judge(job: &MonitoredJob, memory: &MonitorMemory, now: DateTime<Utc>) -> Judgement {
    let mut memory = memory.clone();
    if job.is_deleted {
        let change = memory.is_open.then(|| Change::Recovered { detail: sentences::deleted() });
        let memory = MonitorMemory { gaps_seen: memory.gaps_seen, ..MonitorMemory::default() };
        return Judgement { memory, next_check: None, change };
    }
    let mut counted = forget_ended(&memory.counted, &job.executions, now);
    let mut violations = Vec::new();
    claim_marks(job, &mut counted, now);
    for execution in &job.executions {
        if let Some((violation, attempt)) = violation_of(job, &memory, execution, &counted, now) {
            counted.insert(execution.id, attempt);
            violations.extend(violation);
        }
    }
    for gap in &job.gaps {
        violations.extend(violation_of_gap(job, gap, &mut counted));
    }
    memory.gaps_seen = job.gaps.iter().map(|gap| gap.id).fold(memory.gaps_seen, i64::max);
    if let Some((violation, mark)) = unclaimed(job, now).or_else(|| never_fires(job, now))
        && counted.insert(mark, 0).is_none()
    {
        violations.push(violation);
    }
    while counted.len() > MAX_COUNTED
        && let Some(oldest) = counted.keys().find(|id| !is_mark(**id)).copied()
    {
        counted.remove(&oldest);
    }
    memory.counted = counted;
    violations.sort_by_key(|violation| violation.at);
    let change = count(job, &mut memory, violations);
    let next_check = next_check(job, &memory, now);
    Judgement { memory, next_check, change }
}

/// Forgets the executions that cannot count again: those that ended well, and those that are gone.
fn forget_ended(
    counted: &Counted,
    executions: &[MonitoredExecution],
    now: DateTime<Utc>,
) -> Counted {
    let may_count_again = |id: &Uuid| {
        let Some(execution) = executions.iter().find(|execution| execution.id == *id) else {
            // A mark has no execution.
            return is_mark(*id);
        };
        match execution.state {
            // A discarded one can be restored.
            State::Failed | State::Discarded => true,
            State::Skipped => is_recent(execution, now),
            state => state.is_under_way(),
        }
    };
    let kept = counted.iter().filter(|(id, _)| may_count_again(id));
    kept.map(|(id, attempt)| (*id, *attempt)).collect()
}

/// Whether a skipped execution still matters.
fn is_recent(execution: &MonitoredExecution, now: DateTime<Utc>) -> bool {
    execution.finished_at.is_some_and(|at| now - at < SKIPPED_MATTERS)
}

/// A firing that counted as unclaimed and is claimed meanwhile is counted already. Old marks are forgotten.
fn claim_marks(job: &MonitoredJob, counted: &mut Counted, now: DateTime<Utc>) {
    for execution in &job.executions {
        if counted.remove(&mark(execution.nominal.timestamp_micros())).is_some() {
            counted.insert(execution.id, 0);
        }
    }
    let oldest = mark((now - MARK_MATTERS).timestamp_micros());
    counted.retain(|id, _| !is_mark(*id) || *id == mark(0) || *id >= oldest);
}

/// Returns what an execution newly violates, if anything, and the attempt by which it is counted from now on; `None`: it
/// stays as it is.
fn violation_of(
    job: &MonitoredJob,
    memory: &MonitorMemory,
    execution: &MonitoredExecution,
    counted: &Counted,
    now: DateTime<Utc>,
) -> Option<(Option<Violation>, u32)> {
    let before = counted.get(&execution.id);
    if execution.state == State::Failed {
        let attempt = execution.attempt;
        return match before {
            Some(0) => {
                // It missed a limit before, which counts once, unless that is over and done with.
                let alerts_at_once = job.expectations.alert_after.unwrap_or(1) <= 1;
                let is_over = !memory.is_open && (alerts_at_once || memory.violations == 0);
                Some((is_over.then(|| failure(job, execution, now)), attempt))
            }
            Some(counted) if *counted >= attempt => None,
            _ => Some((Some(failure(job, execution, now)), attempt)),
        };
    }
    if before.is_some() {
        return None;
    }
    if execution.state == State::Skipped {
        return skip(job, execution, now).map(|violation| (Some(violation), 0));
    }
    if !execution.state.is_under_way() {
        return None;
    }
    missed_limit(job, execution, now).map(|violation| (Some(violation), 0))
}

fn failure(job: &MonitoredJob, execution: &MonitoredExecution, now: DateTime<Utc>) -> Violation {
    let in_a_row = job.expectations.alert_after.unwrap_or(1) > 1;
    Violation {
        at: execution.finished_at.unwrap_or(now),
        cause: if in_a_row { Cause::Failed } else { Cause::Parked },
        detail: sentences::failed(execution),
        execution: Some(execution.id),
        occurrences: 1,
    }
}

/// A firing that was skipped and that somebody expects: its lock was held, or it came too late.
fn skip(
    job: &MonitoredJob,
    execution: &MonitoredExecution,
    now: DateTime<Utc>,
) -> Option<Violation> {
    let is_unexpected = execution.is_locked || execution.is_stale;
    if !(job.expectations.has_time_limit() && is_unexpected && is_recent(execution, now)) {
        return None;
    }
    Some(Violation {
        at: execution.finished_at.unwrap_or(now),
        cause: if execution.is_locked { Cause::LockHeld } else { Cause::Missed },
        detail: sentences::skipped(execution),
        execution: Some(execution.id),
        occurrences: 1,
    })
}

/// The first limit that an execution under way has missed.
fn missed_limit(
    job: &MonitoredJob,
    execution: &MonitoredExecution,
    now: DateTime<Utc>,
) -> Option<Violation> {
    let expectations = &job.expectations;
    let after = |start: DateTime<Utc>, limit: Option<std::time::Duration>| {
        let limit = limit?;
        let deadline = start + TimeDelta::from_std(limit).ok()?;
        (deadline <= now).then_some((deadline, limit))
    };
    let running = execution.state == State::Running;
    let late = after(execution.nominal, expectations.start_within)
        .filter(|_| execution.started_at.is_none())
        .map(|(at, limit)| (at, Cause::Late, sentences::late(execution, limit)));
    let missed = after(execution.nominal, expectations.expect_within)
        .map(|(at, limit)| (at, Cause::Missed, sentences::missed(execution, limit)));
    let long = execution
        .started_at
        .filter(|_| running)
        .and_then(|started| after(started, expectations.max_runtime))
        .map(|(at, limit)| (at, Cause::TooLong, sentences::too_long(execution, limit)));
    let (at, cause, detail) =
        [late, missed, long].into_iter().flatten().min_by_key(|(at, _, _)| *at)?;
    let cause = match cause {
        Cause::Late | Cause::Missed if !running && execution.is_locked => Cause::LockHeld,
        Cause::Late | Cause::Missed if never_began(job) => Cause::NeverRan,
        cause => cause,
    };
    Some(Violation { at, cause, detail, execution: Some(execution.id), occurrences: 1 })
}

/// Whether none of the job's executions has begun, as far as anybody can know.
fn never_began(job: &MonitoredJob) -> bool {
    let has_begun =
        |one: &MonitoredExecution| one.started_at.is_some() || one.state == State::Succeeded;
    !(job.has_begun || job.executions.iter().any(has_begun))
}

/// Firings that nobody ran because nobody claimed them in time, but for one that counted as unclaimed. Those that a person
/// or a policy kept from running are not expected.
fn violation_of_gap(
    job: &MonitoredJob,
    gap: &MonitoredGap,
    counted: &mut Counted,
) -> Option<Violation> {
    let [first, last] = [gap.first, gap.last].map(|at| mark(at.timestamp_micros()));
    let before = counted.len();
    counted.retain(|id, _| !(is_mark(*id) && (first..=last).contains(id)));
    let fresh = gap.count.saturating_sub((before - counted.len()) as u32);
    let is_missed = matches!(
        gap.reason,
        Some(GapReason::OutsideWindow | GapReason::MisfireSkip | GapReason::OverLimit)
    );
    (fresh > 0 && is_missed && job.expectations.has_time_limit()).then(|| Violation {
        at: gap.recorded_at,
        cause: Cause::Missed,
        detail: sentences::gap(gap),
        execution: None,
        occurrences: fresh,
    })
}

/// A due firing that no planner has claimed, though one has looked since.
fn unclaimed(job: &MonitoredJob, now: DateTime<Utc>) -> Option<(Violation, Uuid)> {
    let firing = job.next_firing.filter(|_| job.is_active)?;
    let limits = [job.expectations.start_within, job.expectations.expect_within];
    let limit = limits.into_iter().flatten().min()?;
    let deadline = (firing.nominal + TimeDelta::from_std(limit).ok()?).max(firing.due);
    let seen_at = job.planner_seen_at?.min(now);
    (deadline + PLANNER_GRACE <= seen_at).then(|| {
        let cause = if never_began(job) { Cause::NeverRan } else { Cause::Missed };
        let detail = sentences::unclaimed(firing.nominal);
        let violation = Violation { at: deadline, cause, detail, execution: None, occurrences: 1 };
        (violation, mark(firing.nominal.timestamp_micros()))
    })
}

/// A job with a schedule that has no firing ahead, and never had one.
fn never_fires(job: &MonitoredJob, now: DateTime<Utc>) -> Option<(Violation, Uuid)> {
    let nothing_ahead = job.is_active && job.is_scheduled && job.next_firing.is_none();
    let (from, until) = NEVER_FIRES;
    let age = now - job.changed_at;
    let never_fired = job.executions.is_empty() && job.gaps.is_empty();
    if !(nothing_ahead && never_fired && (from..until).contains(&age)) {
        return None;
    }
    let violation = Violation {
        at: now,
        cause: Cause::NeverRan,
        detail: sentences::never_fires(),
        execution: None,
        occurrences: 1,
    };
    Some((violation, mark(0)))
}

/// The id under which something that is no execution counts: ids of executions are of version 7, this is of none.
fn mark(number: i64) -> Uuid {
    Uuid::from_u64_pair(0, number as u64)
}

fn is_mark(id: Uuid) -> bool {
    id.as_u64_pair().0 == 0
}

/// Counts the violations, and decides what becomes of the incident.
fn count(
    job: &MonitoredJob,
    memory: &mut MonitorMemory,
    violations: Vec<Violation>,
) -> Option<Change> {
    let successes: Vec<DateTime<Utc>> = job
        .executions
        .iter()
        .filter(|execution| execution.state == State::Succeeded)
        .filter_map(|execution| execution.finished_at)
        .collect();
    let MonitorMemory { violations: before, violated_at, is_open, .. } = *memory;
    let mut tally = Tally { violations: before, violated_at, is_open };
    let limits = Limits {
        alert_after: job.expectations.alert_after.unwrap_or(1),
        recover_after: job.expectations.recover_after.unwrap_or(1),
    };
    let change = settle(&mut tally, limits, &successes, violations);
    Tally {
        violations: memory.violations,
        violated_at: memory.violated_at,
        is_open: memory.is_open,
    } = tally;
    change
}
