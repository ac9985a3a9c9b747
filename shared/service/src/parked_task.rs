//! The one line at error level that tells of a parked task, whichever way it was parked.
//!
//! Its fields have the same names everywhere, so that a log collector can count them by job, by
//! type and by class, and raise an alarm. The row is the record: a process that dies between the
//! row and the line says nothing, and `sexton failed list` shows it all the same.

use sexton_model::parked_task::ParkedTask;

/// Tells of a parked task.
pub fn log_parked(task: &ParkedTask) {
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
