//! Pages of failed or discarded executions.

use sexton_model::failures::{FailureFilter, Order, PageCursor};
use sexton_store::Store;
use sexton_store::failures::{self, FailedExecution, MutedMatches};
use sexton_store::{StoreError, failures::count_muted};

use crate::error::{InvalidRequest, OperationError};
use crate::paging::{Cursor, Page, PagedList};
use crate::secrets::mask_executions;

/// Maximum number of muted executions counted beside a page, which the count must not slow down.
const MAX_COUNTED: u64 = 1_000;
/// Maximum number of matches counted.
const MAX_MATCHES: i64 = 10_000;

/// The matches that a page leaves out because their groups are muted.
#[derive(Debug)]
pub enum LeftOut {
    /// Their numbers, by group.
    Counted(MutedMatches),
    /// Counting them takes the database too long.
    Uncounted,
}

const fn list_of(order: Order) -> PagedList {
    match order {
        Order::Newest => PagedList::NewestFailures,
        Order::Oldest => PagedList::OldestFailures,
    }
}

/// Parses the cursor of a previous page, which must have the same order.
///
/// # Errors
///
/// [`InvalidRequest`] of the field `cursor`.
pub fn read_cursor(text: Option<&str>, order: Order) -> Result<Option<PageCursor>, InvalidRequest> {
    let position = Cursor::read(list_of(order), text)?;
    Ok(position.map(|(at, id)| PageCursor { order, at, id }))
}

/// Returns a page of at most `limit` executions, their params masked.
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
) -> Result<Page<FailedExecution>, OperationError> {
    let (mut items, next) = failures::list_page(store, filter, order, after, limit).await?;
    for row in &mut items {
        mask_executions(std::slice::from_mut(&mut row.execution));
    }
    let next_cursor = next.map(|next| Cursor::behind(list_of(order), &(next.at, next.id)));
    Ok(Page { items, next_cursor })
}

/// Counts the matches of `filter`, and returns whether the number is exact: at `MAX_MATCHES` there may be more.
///
/// # Errors
///
/// Those of the database.
pub async fn count(store: &Store, filter: &FailureFilter) -> Result<(u64, bool), OperationError> {
    // One more, to know whether there are more.
    let count = failures::count(store, filter, MAX_MATCHES + 1).await?;
    Ok((count.min(MAX_MATCHES) as u64, count <= MAX_MATCHES))
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
