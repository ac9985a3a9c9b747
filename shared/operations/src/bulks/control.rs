//! Lists, shows, stops and resumes bulks.

use std::collections::HashMap;

use serde::Serialize;
use sexton_store::Store;
use sexton_store::bulk::{self, BlockedQuestions, Bulk, ControlError, Item};

use super::blocked_questions::find_blocked;
use super::watch::find;
use crate::actor::Actor;
use crate::error::{BulkAction, Conflict, NotFound, OperationError};
use crate::paging::{Cursor, Page, PagedList};

/// Maximum number of refused executions in one answer.
const MAX_REFUSED: i64 = 100;

/// A bulk with its details.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkDetails {
    /// The bulk.
    pub bulk: Bulk,
    /// The first hundred refused executions, with the reasons.
    pub refused: Vec<Item>,
    /// Why its questions are blocked; `None`: they are not.
    pub waits: Option<BlockedQuestions>,
}

/// Returns a page of at most `limit` bulks behind `cursor`, the newest first.
///
/// # Errors
///
/// [`crate::error::InvalidRequest`] for a cursor of another list, and those of the database.
pub async fn list(
    store: &Store,
    cursor: Option<&str>,
    limit: i64,
) -> Result<Page<Bulk>, OperationError> {
    let before = Cursor::read(PagedList::Bulks, cursor)?;
    let rows = bulk::list(store, before, limit + 1).await?;
    Ok(Page::from_rows(rows, limit, PagedList::Bulks, |bulk| bulk.id))
}

/// Returns why the questions of these bulks are blocked, by the bulk's number.
///
/// # Errors
///
/// Those of the database.
pub async fn list_blocked(
    store: &Store,
    bulks: &[Bulk],
) -> Result<HashMap<i64, BlockedQuestions>, OperationError> {
    let ids: Vec<i64> = bulks.iter().map(|bulk| bulk.id).collect();
    Ok(bulk::list_blocked_questions(store, &ids, None).await?)
}

/// Shows one bulk.
///
/// # Errors
///
/// [`NotFound::Bulk`].
pub async fn show(store: &Store, id: i64) -> Result<BulkDetails, OperationError> {
    let bulk = find(store, id).await?;
    let refused = bulk::list_items(store, id, &["refused", "left"], 0, MAX_REFUSED).await?;
    let waits = find_blocked(store, id).await?;
    Ok(BulkDetails { bulk, refused, waits })
}

/// Stops a bulk: finished items stay done, the others are left as they are.
///
/// # Errors
///
/// [`Conflict::Bulk`] for one that has ended.
pub async fn stop(
    store: &Store,
    id: i64,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<(), OperationError> {
    let stopped = bulk::stop(store, id, actor.because(reason)).await;
    stopped.map_err(|error| control_error(error, BulkAction::Stop))
}

/// Resumes a bulk that was stopped or paused.
///
/// # Errors
///
/// [`Conflict::Bulk`] for one that was neither.
pub async fn resume(
    store: &Store,
    id: i64,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<(), OperationError> {
    let resumed = bulk::resume(store, id, actor.because(reason)).await;
    resumed.map_err(|error| control_error(error, BulkAction::Resume))
}

fn control_error(error: ControlError, action: BulkAction) -> OperationError {
    match error {
        ControlError::Missing(id) => NotFound::Bulk(id).into(),
        ControlError::WrongState(bulk) => {
            let Bulk { id, state, stopped_by, .. } = *bulk;
            Conflict::Bulk { id, action, state, stopped_by }.into()
        }
        ControlError::Store(error) => error.into(),
    }
}
