//! Pages of a bulk's items, with what has become of their executions.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::bulk_item::ItemState;
use uuid::Uuid;

use crate::{Store, StoreError};

/// The most items that a page looks at for those in a state that has ended: no index has these states.
pub const MAX_WALKED_ITEMS: i64 = 50_000;

/// An item of a bulk, with what has become of its execution.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ListedItem {
    /// Its place in the bulk's order, from 1.
    pub ordinal: i64,
    /// The execution.
    pub execution_id: Uuid,
    /// The execution's attempt number when the bulk selected it.
    pub seen: i32,
    /// What the bulk has done with it: `unasked`, `waiting`, `done`, `refused`, `resolved` or `left`.
    pub state: String,
    /// Why it was refused or left, or what the verify command wrote.
    pub note: Option<String>,
    /// When the bulk acted on it; null: it did not, or the audit's retention has removed the record.
    pub acted_at: Option<DateTime<Utc>>,
    /// The name of the execution's job; null: retention has removed the execution.
    pub job_name: Option<String>,
    /// The execution's state at present; null: retention has removed it.
    pub execution_state: Option<String>,
    /// The execution's attempt number at present; null: retention has removed it.
    pub execution_attempt: Option<i32>,
}

/// A page of items.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ItemPage {
    /// The items, in the bulk's order.
    pub items: Vec<ListedItem>,
    /// The ordinal behind which the next page begins, if this one ended because it had looked at [`MAX_WALKED_ITEMS`] items.
    pub walked_to: Option<i64>,
}

/// Lists items of a bulk behind the ordinal `after`, in the bulk's order; at most `limit`. Only those in `state`, if it is given.
///
/// # Errors
///
/// Those of the database.
pub async fn page_of_items(
    store: &Store,
    bulk: i64,
    state: Option<ItemState>,
    after: i64,
    limit: i64,
) -> Result<ItemPage, StoreError> {
    let items = sqlx::query_file_as!(
        ListedItem,
        "src/bulk/item_page.sql",
        bulk,
        after,
        MAX_WALKED_ITEMS,
        state.map(ItemState::as_str),
        limit
    )
    .fetch_all(store.with_timeout())
    .await?;
    let is_full = items.len() as i64 == limit;
    let may_miss = !is_full && state.is_some_and(|state| !state.is_open());
    // Ordinals have no gaps.
    let until = after.saturating_add(MAX_WALKED_ITEMS);
    let walked_to = (may_miss && has_items_behind(store, bulk, until).await?).then_some(until);
    Ok(ItemPage { items, walked_to })
}

async fn has_items_behind(store: &Store, bulk: i64, ordinal: i64) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- has_items_behind
        SELECT EXISTS (SELECT FROM sexton.bulk_items WHERE bulk_id = $1 AND ordinal > $2) AS "exists!""#,
        bulk,
        ordinal
    )
    .fetch_one(store.with_timeout())
    .await?)
}
