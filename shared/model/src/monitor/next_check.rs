//! When a monitor has to be checked again.

use chrono::{DateTime, TimeDelta, Utc};

use super::{MonitorMemory, MonitoredJob};
use crate::state::State;

/// Bounds of the time between two looks for the success that ends an incident. It grows with the incident's age.
const RECOVERY_POLL: (TimeDelta, TimeDelta) = (TimeDelta::seconds(5), TimeDelta::minutes(5));
/// The age of an incident, divided by the time between two looks.
const RECOVERY_SHARE: i32 = 20;
/// When a job that never fires is looked at.
const NEVER_FIRES_CHECK: TimeDelta = TimeDelta::seconds(61);
/// How soon a due firing is looked at again that a planner has not claimed.
const UNCLAIMED_POLL: TimeDelta = TimeDelta::seconds(15);

/// Returns the earliest instant after `now` at which a time limit can be missed, or an incident can end. `None`: only an
/// event can change anything.
pub(super) fn next_check(
    job: &MonitoredJob,
    memory: &MonitorMemory,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let mut instants = Vec::new();
    limits_of_executions(job, memory, now, &mut instants);
    limits_of_next_firing(job, now, &mut instants);
    if memory.is_open {
        let age = memory.violated_at.map_or(TimeDelta::zero(), |at| now - at);
        instants.push(now + recovery_poll(age));
    }
    let checked = job.changed_at + NEVER_FIRES_CHECK;
    if job.is_active && job.is_scheduled && job.next_firing.is_none() && checked > now {
        instants.push(checked);
    }
    instants.into_iter().min()
}

/// Returns the time until the next look for the success that ends an incident of an age.
pub(crate) fn recovery_poll(age: TimeDelta) -> TimeDelta {
    let (shortest, longest) = RECOVERY_POLL;
    (age / RECOVERY_SHARE).clamp(shortest, longest)
}

fn limits_of_executions(
    job: &MonitoredJob,
    memory: &MonitorMemory,
    now: DateTime<Utc>,
    instants: &mut Vec<DateTime<Utc>>,
) {
    let expectations = &job.expectations;
    let [start, success, runtime] =
        [expectations.start_within, expectations.expect_within, expectations.max_runtime]
            .map(|limit| limit.and_then(|limit| TimeDelta::from_std(limit).ok()));
    let watched = job.executions.iter().filter(|execution| {
        execution.state.is_under_way() && !memory.counted.contains_key(&execution.id)
    });
    for execution in watched {
        let running = execution.state == State::Running;
        let begins = start.filter(|_| execution.started_at.is_none());
        instants.extend(begins.map(|limit| execution.nominal + limit));
        instants.extend(success.map(|limit| execution.nominal + limit));
        // An attempt that begins later misses its limit later.
        let runs_from = execution.started_at.filter(|_| running).unwrap_or(now);
        instants.extend(runtime.map(|limit| runs_from + limit));
    }
}

fn limits_of_next_firing(
    job: &MonitoredJob,
    now: DateTime<Utc>,
    instants: &mut Vec<DateTime<Utc>>,
) {
    let Some(firing) = job.next_firing.filter(|_| job.is_active) else { return };
    let expectations = &job.expectations;
    let limits = [expectations.start_within, expectations.expect_within];
    let limit =
        limits.into_iter().flatten().min().and_then(|limit| TimeDelta::from_std(limit).ok());
    if let Some(limit) = limit {
        // It may be claimed meanwhile, and then it is judged as an execution.
        let deadline = (firing.nominal + limit).max(firing.due);
        instants.push(if deadline > now { deadline } else { now + UNCLAIMED_POLL });
    }
    let runtime = expectations.max_runtime.and_then(|limit| TimeDelta::from_std(limit).ok());
    instants.extend(runtime.map(|limit| firing.due.max(now) + limit));
}
