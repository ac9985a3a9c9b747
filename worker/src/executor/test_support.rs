//! Helpers of the executors' tests: a task, a long lease, and readers of an end.

use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use crate::executor::{HostInstant, Outcome, TaskControl, TaskEnd, TaskRun, TaskSupervisor};
use crate::output::Stream;

/// A timeout that no test reaches unless something hangs.
pub(crate) const LONG_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns an attempt of the job `billing.charge`.
pub(crate) fn task(attempt: u32, params: Value) -> TaskRun {
    let scheduled_for = "2025-12-12T08:00:00Z".parse().unwrap();
    TaskRun {
        execution_id: Uuid::from_u128(7),
        attempt,
        job: "billing.charge".to_owned(),
        target: None,
        execution_key: "cron-2025-12-12T08:00:00Z".to_owned(),
        scheduled_for,
        deadline: scheduled_for,
        idempotency_key: "billing.charge:cron-2025-12-12T08:00:00Z".to_owned(),
        params,
        timeout: LONG_TIMEOUT,
        trace: None,
    }
}

/// Returns a lease that no test outlives.
pub(crate) fn long_lease() -> (TaskSupervisor, TaskControl) {
    TaskSupervisor::new(HostInstant::now() + 2 * LONG_TIMEOUT)
}

/// Returns class, message and whether the failure is retried.
pub(crate) fn failure(end: &TaskEnd) -> (&str, &str, bool) {
    match &end.outcome {
        Outcome::Retry { class, message, .. } | Outcome::Failed { class, message } => {
            (class, message, true)
        }
        Outcome::Permanent { class, message } => (class, message, false),
        other => panic!("not a failure: {other:?}"),
    }
}

/// Returns the lines of a stream.
pub(crate) fn lines(end: &TaskEnd, stream: Stream) -> Vec<&str> {
    let lines = end.output.lines.iter().filter(|line| line.stream == stream);
    lines.map(|line| line.text.as_str()).collect()
}
