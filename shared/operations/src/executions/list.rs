//! Pages of executions, by a filter.

use chrono::{DateTime, Utc};
use sexton_model::execution_filter::ExecutionFilter;
use sexton_store::Store;
use sexton_store::executions::{self, Execution, ExecutionPosition};
use uuid::Uuid;

use crate::error::{InvalidRequest, OperationError};
use crate::paging::{Cursor, Page, PagedList};
use crate::secrets::mask_executions;

/// A page of executions.
#[derive(Debug)]
pub struct ExecutionPage {
    /// The executions, the latest claim first, with their params masked.
    pub page: Page<Execution>,
    /// Whether the page ended because it had looked at as many rows as it may; the next one looks further.
    pub is_cut_short: bool,
}

/// Parses the cursor of a list of executions.
///
/// # Errors
///
/// [`InvalidRequest`] of the field `cursor`.
pub fn read_cursor(text: Option<&str>) -> Result<Option<ExecutionPosition>, InvalidRequest> {
    let position = Cursor::read::<(DateTime<Utc>, Uuid)>(PagedList::Executions, text)?;
    Ok(position.map(|(claimed_at, id)| ExecutionPosition { claimed_at, id }))
}

/// Returns a page of at most `limit` executions that match `filter`. Looks at no more than `most_walked` of them.
///
/// # Errors
///
/// Those of the database.
pub async fn list(
    store: &Store,
    filter: &ExecutionFilter,
    after: Option<ExecutionPosition>,
    limit: i64,
    most_walked: i64,
) -> Result<ExecutionPage, OperationError> {
    let found = executions::list(store, filter, after, limit, most_walked).await?;
    let mut items = found.executions;
    mask_executions(&mut items);
    let next_cursor =
        found.next.map(|next| Cursor::behind(PagedList::Executions, &(next.claimed_at, next.id)));
    Ok(ExecutionPage { page: Page { items, next_cursor }, is_cut_short: found.is_cut_short })
}
