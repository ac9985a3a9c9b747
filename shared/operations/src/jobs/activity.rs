//! What the latest executions of the jobs of a page say: their states, how long they take, how many are failed.

use std::collections::HashMap;

use sexton_model::lint::RunTimes;
use sexton_store::Store;
use sexton_store::jobs;
use uuid::Uuid;

use crate::error::OperationError;

/// Number of each job's last executions whose states are read.
const MAX_RECENT_STATES: i64 = 30;
/// Number of each job's last executions whose attempts are timed.
const MAX_TIMED_EXECUTIONS: i64 = 60;
/// Number of a job's failed executions up to which they are counted.
pub const MAX_COUNTED_FAILURES: i64 = 100;

/// What the latest executions of a job say.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobActivity {
    /// The states of its last executions, the oldest claim first.
    pub states: Vec<String>,
    /// How long its attempts take; `None`: none ended by itself.
    pub run_times: Option<RunTimes>,
    /// Number of its failed executions, counted up to [`MAX_COUNTED_FAILURES`].
    pub failed: i64,
}

/// Reads the activity of these jobs; those without any execution are missing.
///
/// # Errors
///
/// Those of the database.
pub async fn read(
    store: &Store,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, JobActivity>, OperationError> {
    let mut activities: HashMap<Uuid, JobActivity> = HashMap::new();
    for (id, states) in jobs::list_recent_states(store, ids, MAX_RECENT_STATES).await? {
        activities.entry(id).or_default().states = states;
    }
    for (id, times) in jobs::list_recent_run_times(store, ids, MAX_TIMED_EXECUTIONS).await? {
        activities.entry(id).or_default().run_times = Some(times);
    }
    for (id, failed) in jobs::count_failed_by_job(store, ids, MAX_COUNTED_FAILURES).await? {
        activities.entry(id).or_default().failed = failed;
    }
    Ok(activities)
}
