//! What is said of a task that was parked: the facts of its row, for one line of a log.

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
    /// Who claimed it, as `<instance>:<pid>`: a scheduler or the program that triggered it.
    pub claimed_by: String,
    /// The number of the attempt that would be next; the one before failed, if it was opened.
    pub attempt: AttemptNumber,
    /// Retries since the claim or the last requeue.
    pub retry_count: u32,
    /// By the database's clock.
    pub failed_at: DateTime<Utc>,
    /// A word.
    pub class: String,
    /// Why it failed, in the words of whatever failed.
    pub reason: String,
}
