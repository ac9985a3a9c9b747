//! Triggers several jobs, each by itself: one that is refused keeps no other from running.

use sexton_model::job::is_reserved;
use sexton_model::key;
use sexton_store::Store;
use sexton_store::jobs::{self, JobFilter};
use sexton_store::trigger::Triggered;

use super::trigger::{TriggerRequest, trigger};
use crate::actor::Actor;
use crate::error::{Conflict, InvalidRequest, OperationError};

/// Maximum number of jobs of one request.
pub const MAX_JOBS: usize = 1_000;

/// The jobs that a filter selects, up to [`MAX_JOBS`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectedJobs {
    /// Their names, in order.
    pub names: Vec<String>,
    /// How many of them are paused: they run all the same.
    pub paused: usize,
    /// Whether there are more, so that the filter has to be narrowed.
    pub more: bool,
}

/// What became of a job of a trigger.
#[derive(Debug)]
pub struct JobTrigger {
    /// The job's name.
    pub job: String,
    /// Its execution, or why it was refused.
    pub result: Result<Triggered, OperationError>,
}

impl SelectedJobs {
    /// Checks that these are as many as were seen in a preview, and can be triggered at once.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`] for more than [`MAX_JOBS`]; [`Conflict`] for none, or another number.
    pub fn check(&self, seen: usize) -> Result<(), OperationError> {
        if self.more {
            let problem = format!("more than {MAX_JOBS} jobs match; narrow the filter");
            return Err(InvalidRequest::Other(problem).into());
        }
        let count = self.names.len();
        if count == 0 || count != seen {
            let problem = format!("{count} jobs match by now, not {seen}; look at them again");
            return Err(Conflict::Other(problem).into());
        }
        Ok(())
    }
}

/// Returns the jobs that a filter selects, without those that Sexton makes itself.
///
/// # Errors
///
/// Those of the database.
pub async fn select(store: &Store, filter: &JobFilter) -> Result<SelectedJobs, OperationError> {
    let mut rows = jobs::list(store, filter, MAX_JOBS as i64 + 1).await?;
    let more = rows.len() > MAX_JOBS;
    rows.truncate(MAX_JOBS);
    rows.retain(|job| !is_reserved(&job.name));
    let paused = rows.iter().filter(|job| job.status == "paused").count();
    let names = rows.into_iter().map(|job| job.name).collect();
    Ok(SelectedJobs { names, paused, more })
}

/// Triggers jobs with their own params, one after the other, each in its own transaction. After a crash in between,
/// repeat the request with the same key: it runs each job once.
///
/// # Errors
///
/// [`InvalidRequest`] of the field `key`: nothing was triggered. [`OperationError::Store`] and
/// [`OperationError::Failed`] of the first job: whether it was triggered is unknown, and the others were not.
pub async fn trigger_all(
    store: &Store,
    jobs: Vec<String>,
    (key, reason): (Option<&str>, Option<&str>),
    actor: &Actor,
) -> Result<Vec<JobTrigger>, OperationError> {
    if let Some(key) = key {
        key::check(key).map_err(|error| InvalidRequest::field("key", format!(": {error}")))?;
    }
    let mut all = Vec::with_capacity(jobs.len());
    for job in jobs {
        let request = TriggerRequest { job: &job, key, params: None, reason };
        match trigger(store, request, actor).await {
            // Whether the others run is as unknown as this one.
            Err(error @ (OperationError::Store(_) | OperationError::Failed(_)))
                if all.is_empty() =>
            {
                return Err(error);
            }
            result => all.push(JobTrigger { job, result }),
        }
    }
    Ok(all)
}
