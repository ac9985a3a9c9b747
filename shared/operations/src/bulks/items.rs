//! Lists the items of a bulk, with what has become of their executions.

use sexton_model::bulk_item::ItemState;
use sexton_store::Store;
use sexton_store::bulk::{self, ListedItem};

use super::watch::find;
use crate::error::OperationError;
use crate::paging::{Cursor, Page, PagedList};

/// A page of a bulk's items.
#[derive(Clone, PartialEq, Debug)]
pub struct ItemPage {
    /// The items, in the bulk's order.
    pub page: Page<ListedItem>,
    /// Whether the page ended because it had looked at [`bulk::MAX_WALKED_ITEMS`] items; the next one looks further.
    pub is_cut_short: bool,
}

/// Returns a page of at most `limit` items of a bulk behind `cursor`: those in that state or in any.
///
/// # Errors
///
/// [`crate::error::NotFound::Bulk`], [`crate::error::InvalidRequest`] for a cursor of another list, and those of the database.
pub async fn list(
    store: &Store,
    id: i64,
    state: Option<ItemState>,
    cursor: Option<&str>,
    limit: i64,
) -> Result<ItemPage, OperationError> {
    let after: Option<i64> = Cursor::read(PagedList::BulkItems, cursor)?;
    find(store, id).await?;
    let found = bulk::page_of_items(store, id, state, after.unwrap_or(0), limit + 1).await?;
    let mut page = Page::from_rows(found.items, limit, PagedList::BulkItems, |item| item.ordinal);
    let walked_to = found.walked_to.filter(|_| page.next_cursor.is_none());
    if let Some(ordinal) = walked_to {
        page.next_cursor = Some(Cursor::behind(PagedList::BulkItems, &ordinal));
    }
    Ok(ItemPage { page, is_cut_short: walked_to.is_some() })
}
