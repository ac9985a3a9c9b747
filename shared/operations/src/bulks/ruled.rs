//! Executions that are given by their ids: where a rule demands approval, one request waits for all of them.

use sexton_model::bulk::BulkKind;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_store::Store;

use super::request::{BulkAction, BulkPreview, preview, preview_cancel};
use crate::approvals::gate::Gate;
use crate::error::OperationError;
use crate::selection::Selection;

/// Returns the bulk that an action on these executions has to be, because a rule demands the approval of others for it; `None`: the caller acts on
/// each by itself. One of a single execution is no bulk, unless it leads into another pool, which is an edit. With `seen`, the first of them only at
/// that attempt number.
///
/// # Errors
///
/// Those of the database.
pub async fn ruled_bulk(
    store: &Store,
    action: BulkAction<'_>,
    ids: &[ExecutionId],
    seen: Option<AttemptNumber>,
) -> Result<Option<BulkPreview>, OperationError> {
    let may_wait = ids.len() > 1 || action.pool.is_some();
    if !may_wait {
        return Ok(None);
    }
    let gate = Gate::load(store).await?;
    if gate.without_rules().is_some() {
        return Ok(None);
    }
    let bulk = if action.kind == BulkKind::Cancel {
        preview_cancel(store, &Selection::Ids(ids.to_vec()), None).await?
    } else {
        preview(store, &Selection::Ids(ids.to_vec()), None).await?
    };
    let looked_at: Vec<_> = ids.iter().copied().zip(seen).collect();
    let bulk = bulk.at_attempts(&looked_at);
    let Some(proposal) = bulk.proposal(action) else { return Ok(None) };
    Ok(gate.demand(store, &proposal).await?.map(|_| bulk))
}
