//! Selects executions by a filter, page by page.

use chrono::{DateTime, Utc};
use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::failures::{FailureFilter, Order, PageCursor};
use uuid::Uuid;

use crate::executions::list_cancellable;
use crate::failures::{MAX_SEARCH_ROWS, search};
use crate::{Store, StoreError};

/// An execution's position: when it failed, was discarded or (to cancel it) claimed, and its id.
pub(super) type PagePosition = (DateTime<Utc>, Uuid);

/// A page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Page {
    /// The matches: the longest failed first; those to cancel by their ids.
    pub(super) places: Vec<PagePosition>,
    /// The last position read; `None`: nothing was read.
    pub(super) last: Option<PagePosition>,
    /// Whether no match is left behind it.
    pub(super) complete: bool,
}

/// Returns the executions that match `filter` and had ended by `until`, the longest failed first, behind `after`; at
/// most `limit`. The same statement serves lists, so both find the same executions.
pub(super) async fn page(
    store: &Store,
    filter: &FailureFilter,
    until: DateTime<Utc>,
    after: Option<PagePosition>,
    limit: i64,
) -> Result<Page, StoreError> {
    let mut page = Page::default();
    let mut after = after.map(|(at, id)| PageCursor { order: Order::Oldest, at, id });
    while !page.complete && (page.places.len() as i64) < limit {
        let page_limit = MAX_SEARCH_ROWS.min(limit - page.places.len() as i64);
        let found = search(store, filter, Order::Oldest, after, page_limit).await?;
        let matching: Vec<_> = found.iter().take_while(|one| one.failed_at <= until).collect();
        page.complete = (found.len() as i64) < page_limit || matching.len() < found.len();
        page.places.extend(matching.iter().map(|one| (one.failed_at, one.execution_id)));
        after = found.last().map(|one| one.cursor(Order::Oldest));
    }
    page.last = page.places.last().copied();
    Ok(page)
}

/// Returns the executions that match `filter`, wait or run, and were claimed by `until`, by their ids from behind
/// `after`; at most `limit`.
pub(super) async fn cancellable_page(
    store: &Store,
    filter: &ExecutionFilter,
    until: DateTime<Utc>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Page, StoreError> {
    let found = list_cancellable(store, filter, until, after, limit).await?;
    let places: Vec<PagePosition> = found.iter().map(|one| (one.claimed_at, one.id)).collect();
    Ok(Page { last: places.last().copied(), complete: (places.len() as i64) < limit, places })
}
