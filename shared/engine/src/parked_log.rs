//! Logs parked executions, however they were parked, in one line each at error level.
//!
//! The line's fields have the same names everywhere, so that a log collector can count them by job, by type and
//! by class, and alert. The row is the record: a process that dies between the row and the line logs nothing,
//! and `sexton failed list` still shows the execution.

use std::time::Duration;

use sexton_model::id::ExecutionId;
use sexton_model::parked_task::ParkedTask;
use sexton_store::Store;
use sexton_store::parked_messages::read_notices;
use sexton_store::timeout::with_timeout;

/// The most executions with a line of their own, if the rows cannot be read.
const MAX_LOGGED_IDS: usize = 100;

/// Logs those of `ids` that are failed by their rows. The others are already requeued, and need no attention.
/// If the rows cannot be read within `limit`, a line with `execution.id` names each of the first 100, and one line
/// counts the others.
pub async fn log_parked(store: &Store, ids: &[ExecutionId], limit: Duration) {
    match with_timeout(limit, read_notices(store, ids)).await {
        Ok(tasks) => tasks.iter().for_each(log_one),
        Err(error) => {
            for id in ids.iter().take(MAX_LOGGED_IDS) {
                tracing::error!(
                    execution.id = %id,
                    "execution {id} is parked; its row cannot be read now: {error}"
                );
            }
            if let Some(more @ 1..) = ids.len().checked_sub(MAX_LOGGED_IDS) {
                tracing::error!(
                    "{more} more executions are parked; `sexton failed list` shows them"
                );
            }
        }
    }
}

fn log_one(task: &ParkedTask) {
    let ParkedTask { id, job, reason, .. } = task;
    tracing::error!(
        task.r#type = task.task_type,
        task.target = task.target,
        job.name = job,
        scheduler.id = %task.job_id,
        scheduler.name = task.claimed_by,
        execution.id = %id,
        attempt.number = task.attempt.get(),
        retry.count = task.retry_count,
        failed_at = %task.failed_at,
        error.class = task.class,
        reason,
        "{job} is parked: {reason}; `sexton failed show {id}` tells more"
    );
}
