//! Ends a job for good.

use sexton_service::fault;
use sexton_store::Store;
use sexton_store::jobs::{self, Delete, DeleteError, Deleted};

use crate::actor::Actor;
use crate::error::{Conflict, InvalidRequest, OperationError};
use crate::job_names;

/// Deletes a job: it never fires again, its name is free, its executions stay. A dry run only reports the executions
/// under way. One transaction, with its record in the audit.
///
/// # Errors
///
/// [`crate::error::NotFound::Job`]; [`Conflict::JobUnderWay`] if executions wait or run and the request does not
/// cancel them; [`InvalidRequest`] for a job that bulks need.
pub async fn delete(
    store: &Store,
    request: Delete<'_>,
    actor: &Actor,
    reason: &str,
) -> Result<Deleted, OperationError> {
    let deleted = match jobs::delete(store, request, actor.because(Some(reason)), None).await {
        Ok(deleted) => deleted,
        Err(DeleteError::Missing(name)) => return Err(job_names::missing(store, &name).await),
        Err(DeleteError::Store(error)) => return Err(error.into()),
        Err(DeleteError::Changed { name, revision }) => {
            return Err(Conflict::JobChanged { name, revision }.into());
        }
        Err(error @ DeleteError::UnderWay { .. }) => {
            return Err(Conflict::JobUnderWay(error.to_string()).into());
        }
        Err(error @ (DeleteError::Reserved(_) | DeleteError::InFlow { .. })) => {
            return Err(InvalidRequest::Other(error.to_string()).into());
        }
        Err(error @ DeleteError::Locked(_)) => {
            return Err(OperationError::Failed(error.to_string()));
        }
    };
    if !request.dry_run {
        fault::point("console.deleted");
    }
    Ok(deleted)
}
