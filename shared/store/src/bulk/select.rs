//! Which executions a filter means, page by page.

use chrono::{DateTime, Utc};
use sexton_model::graveyard::{Cursor, Filter, Order};
use uuid::Uuid;

use crate::graveyard::{MAX_FOUND, search};
use crate::{Store, StoreError};

/// Where an execution stands: when it failed (or was discarded), and its id.
pub(super) type Place = (DateTime<Utc>, Uuid);

/// A page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Page {
    /// What fits, the longest failed first.
    pub(super) places: Vec<Place>,
    /// Up to where was looked; `None`: there was nothing.
    pub(super) last: Option<Place>,
    /// Whether nothing is left behind it.
    pub(super) complete: bool,
}

/// What fits `filter` and had ended by `until`, the longest failed first, behind `after`; at most `limit`. The
/// same executions as a list of the same filter has, by the same statement.
pub(super) async fn page(
    store: &Store,
    filter: &Filter,
    until: DateTime<Utc>,
    after: Option<Place>,
    limit: i64,
) -> Result<Page, StoreError> {
    let mut page = Page::default();
    let mut after = after.map(|(at, id)| Cursor { order: Order::Oldest, at, id });
    while !page.complete && (page.places.len() as i64) < limit {
        let most = MAX_FOUND.min(limit - page.places.len() as i64);
        let found = search(store, filter, Order::Oldest, after, most).await?;
        let fitting: Vec<_> = found.iter().take_while(|one| one.failed_at <= until).collect();
        page.complete = (found.len() as i64) < most || fitting.len() < found.len();
        page.places.extend(fitting.iter().map(|one| (one.failed_at, one.execution_id)));
        after = found.last().map(|one| one.cursor(Order::Oldest));
    }
    page.last = page.places.last().copied();
    Ok(page)
}
