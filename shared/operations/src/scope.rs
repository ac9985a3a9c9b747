//! The jobs to which a caller is restricted, where the database does not look by itself.
//!
//! It refuses every change that is recorded in the audit: see [`Store::within`]. Here is what it cannot know: a filter, which is
//! narrowed; what is enqueued; and requests for approval.

use std::collections::BTreeMap;

use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::failures::FailureFilter;
use sexton_store::{Store, StoreError, jobs};

use crate::error::OperationError;

/// Refuses a job that the caller may not change. A deleted one of that name does not count: nothing new comes of it.
///
/// # Errors
///
/// [`OperationError::OutOfScope`], and those of the database.
pub(crate) async fn check_job(store: &Store, name: &str) -> Result<(), OperationError> {
    let Some(only) = store.only_jobs() else { return Ok(()) };
    let job = jobs::find(store, name).await?;
    let labels = job.and_then(|job| serde_json::from_value(job.labels).ok()).unwrap_or_default();
    if only.contains(name, &labels) {
        return Ok(());
    }
    Err(refusal(store, &format!("the job {name}")))
}

/// A filter with conditions about jobs.
pub(crate) trait JobConditions: Clone {
    /// Labels that the jobs have, and the beginning of their names.
    fn of_jobs(&mut self) -> (&mut BTreeMap<String, String>, &mut Option<String>);
}

impl JobConditions for FailureFilter {
    fn of_jobs(&mut self) -> (&mut BTreeMap<String, String>, &mut Option<String>) {
        (&mut self.labels, &mut self.job_prefix)
    }
}

impl JobConditions for ExecutionFilter {
    fn of_jobs(&mut self) -> (&mut BTreeMap<String, String>, &mut Option<String>) {
        (&mut self.labels, &mut self.job_prefix)
    }
}

/// Narrows a filter to the jobs that the caller may change.
///
/// # Errors
///
/// [`OperationError::OutOfScope`]: it selects only others.
pub(crate) fn narrow<F: JobConditions>(store: &Store, filter: &F) -> Result<F, OperationError> {
    let mut filter = filter.clone();
    let (labels, job_prefix) = filter.of_jobs();
    match store.only_jobs() {
        Some(only) if !only.narrow(labels, job_prefix) => Err(refusal(store, "other jobs")),
        _ => Ok(filter),
    }
}

/// Makes the refusal of what the caller may not change.
pub(crate) fn refusal(store: &Store, what: &str) -> OperationError {
    let only = store.only_jobs().map(ToString::to_string).unwrap_or_default();
    OperationError::OutOfScope(format!("restricted to the jobs {only}, and this concerns {what}"))
}

impl From<StoreError> for OperationError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::OutOfScope(_) => Self::OutOfScope(error.to_string()),
            other => Self::Store(other),
        }
    }
}
