//! Pages of failed or discarded executions.

use serde_json::{Value, json};
use sexton_model::failures::{FailureFilter, Order, PageCursor, mask_secrets};
use sexton_store::Store;
use sexton_store::failures::{self, FailedExecution, MutedMatches};
use sexton_store::{StoreError, failures::count_muted};

use crate::error::{InvalidRequest, OperationError};
use crate::text::line;

/// Maximum number of muted executions counted beside a page, which the count must not slow down.
const MAX_COUNTED: u64 = 1_000;

/// A page, and where the next one begins.
#[derive(Debug)]
pub struct Page {
    /// The executions, in the requested order.
    pub rows: Vec<FailedExecution>,
    /// The cursor of the next page; `None`: this is the last.
    pub next: Option<PageCursor>,
}

/// The matches that a page leaves out because their groups are muted.
#[derive(Debug)]
pub enum LeftOut {
    /// Their numbers, by group.
    Counted(MutedMatches),
    /// Counting them takes the database too long.
    Uncounted,
}

/// Parses the cursor of a previous page, which must have the same order.
///
/// # Errors
///
/// [`InvalidRequest`] of the field `after`.
pub fn read_cursor(text: &str, order: Order) -> Result<PageCursor, InvalidRequest> {
    let cursor: PageCursor = text.parse().map_err(|problem| {
        InvalidRequest::field("after", format!("{:?} {problem}", line(text, 60)))
    })?;
    if cursor.order != order {
        return Err(InvalidRequest::WrongOrder);
    }
    Ok(cursor)
}

/// Returns a page of at most `limit` executions.
///
/// # Errors
///
/// Those of the database.
pub async fn page(
    store: &Store,
    filter: &FailureFilter,
    order: Order,
    after: Option<PageCursor>,
    limit: i64,
) -> Result<Page, OperationError> {
    let (rows, next) = failures::list_page(store, filter, order, after, limit).await?;
    Ok(Page { rows, next })
}

/// Counts the matches that a list of `filter` leaves out.
///
/// # Errors
///
/// Those of the database; a count that takes too long is [`LeftOut::Uncounted`].
pub async fn left_out(store: &Store, filter: &FailureFilter) -> Result<LeftOut, OperationError> {
    match count_muted(store, filter, None, MAX_COUNTED).await {
        Ok(matches) => Ok(LeftOut::Counted(matches)),
        Err(StoreError::TooSlow(_)) => Ok(LeftOut::Uncounted),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether lists include all failures from before the table of failures existed.
///
/// # Errors
///
/// Those of the database.
pub async fn is_complete(store: &Store) -> Result<bool, OperationError> {
    Ok(failures::is_backfilled(store).await?)
}

/// Returns the row's columns, its worker, and the cursor behind it; with the params masked.
///
/// # Errors
///
/// [`OperationError::Failed`], which never happens: every part is JSON.
pub fn document(row: &FailedExecution, order: Order) -> Result<Value, OperationError> {
    let mut document = serde_json::to_value(row)
        .map_err(|error| OperationError::Failed(format!("the answer is no JSON: {error}")))?;
    document["params"] = mask_secrets(&row.execution.params);
    let cursor = row.execution.finished_at.map(|at| PageCursor { order, at, id: row.execution.id });
    document["cursor"] = json!(cursor.map(|cursor| cursor.to_string()));
    Ok(document)
}
