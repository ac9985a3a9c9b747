//! Which executions a filter means, page by page.

use chrono::{DateTime, Utc};
use sexton_model::failures::{FailureFilter, Order, PageCursor};
use uuid::Uuid;

use crate::failures::{MAX_SEARCH_ROWS, search};
use crate::{Store, StoreError};

/// Where an execution stands: when it failed (or was discarded), and its id.
pub(super) type PagePosition = (DateTime<Utc>, Uuid);

/// A page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Page {
    /// What fits, the longest failed first.
    pub(super) places: Vec<PagePosition>,
    /// Up to where was looked; `None`: there was nothing.
    pub(super) last: Option<PagePosition>,
    /// Whether nothing is left behind it.
    pub(super) complete: bool,
}

/// What fits `filter` and had ended by `until`, the longest failed first, behind `after`; at most `limit`. The
/// same executions as a list of the same filter has, by the same statement.
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
