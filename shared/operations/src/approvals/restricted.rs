//! Requests of callers who are restricted to jobs, or that such a caller decides about: they are not in the audit of a job, so the
//! database does not compare them.

use serde::de::DeserializeOwned;
use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::failures::FailureFilter;
use sexton_store::{Store, jobs};
use uuid::Uuid;

use super::proposal::{BulkProposal, Proposal};
use crate::error::OperationError;
use crate::scope::{self, JobConditions};

/// Refuses an action that concerns jobs that the caller may not change, or may do so when it is carried out.
///
/// # Errors
///
/// [`OperationError::OutOfScope`], and those of the database.
pub(crate) async fn check(store: &Store, proposal: &Proposal) -> Result<(), OperationError> {
    let Some(only) = store.only_jobs() else { return Ok(()) };
    let executions: Vec<Uuid> = match proposal {
        Proposal::Edit(edit) => vec![edit.execution],
        Proposal::Discard(discard) => vec![discard.execution],
        Proposal::BulkRequeue(bulk) | Proposal::BulkDiscard(bulk) => {
            selected::<FailureFilter>(store, bulk)?
        }
        Proposal::BulkCancel(bulk) => selected::<ExecutionFilter>(store, bulk)?,
        Proposal::Backfill(backfill) => return scope::check_job(store, &backfill.job).await,
    };
    let jobs = jobs::list_of_executions(store, &executions).await?;
    match jobs.iter().find(|(name, labels)| !only.contains(name, labels)) {
        Some((name, _)) => Err(scope::refusal(store, &format!("the job {name}"))),
        None => Ok(()),
    }
}

/// Returns the ids of a bulk; of one with a filter none. That one's preview counts some, and it takes all that the filter selects: one that
/// would be narrowed when it is carried out would not be what was requested.
fn selected<F>(store: &Store, bulk: &BulkProposal) -> Result<Vec<Uuid>, OperationError>
where
    F: JobConditions + DeserializeOwned + PartialEq,
{
    if let Some(filter) = bulk.read_filter::<F>()?
        && scope::narrow(store, &filter)? != filter
    {
        return Err(scope::refusal(store, "other jobs, too"));
    }
    Ok(bulk.ids.iter().map(|(id, _)| *id).collect())
}
