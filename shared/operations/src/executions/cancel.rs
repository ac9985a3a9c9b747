//! Cancels executions that wait or run.

use sexton_model::id::ExecutionId;
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::operator::{self, Cancelled};

use crate::actor::Actor;
use crate::error::{ExecutionAction, OperationError, action_error};

/// Cancels a waiting execution; requests it of the worker of a running one. One transaction, with its record in the
/// audit.
///
/// # Errors
///
/// [`crate::error::Conflict`] for one that has ended or failed, or whose cancel is already requested.
pub async fn cancel(
    store: &Store,
    id: ExecutionId,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<Cancelled, OperationError> {
    let done = operator::cancel(store, id, actor.because(reason), None).await;
    let done = done.map_err(|error| action_error(error, ExecutionAction::Cancel))?;
    fault::point("console.cancelled");
    Ok(done)
}
