//! The facts of a parked task's row, for one line of a log.

use chrono::{DateTime, Utc};

use crate::id::{AttemptNumber, ExecutionId, JobId};

/// A failed execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParkedTask {
    /// The execution.
    pub id: ExecutionId,
    /// The task type, looked up in a worker's catalogue.
    pub task_type: String,
    /// The job's target, if it has one.
    pub target: Option<String>,
    /// The job's name.
    pub job: String,
    /// The job.
    pub job_id: JobId,
    /// The claimer, as `<instance>:<pid>`: a scheduler or the program that triggered it.
    pub claimed_by: String,
    /// The number of the next attempt; the one before failed, if it was opened.
    pub attempt: AttemptNumber,
    /// Retries since the claim or the last requeue.
    pub retry_count: u32,
    /// When it failed, by the database's clock.
    pub failed_at: DateTime<Utc>,
    /// The error class.
    pub class: String,
    /// The error's message.
    pub reason: String,
}
