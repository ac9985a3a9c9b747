//! Read access to a bulk's items, for the console.

use serde::Serialize;
use uuid::Uuid;

use crate::{Store, StoreError};

/// A row of `bulk_items`; the fields are named after the columns.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Item {
    pub ordinal: i64,
    pub execution_id: Uuid,
    pub seen: i32,
    pub state: String,
    pub note: Option<String>,
}

/// Returns items of a bulk after the ordinal `after`, in their order; at most `limit`. `states`: only in these;
/// empty: in any.
pub async fn list_items(
    store: &Store,
    bulk: i64,
    states: &[&str],
    after: i64,
    limit: i64,
) -> Result<Vec<Item>, StoreError> {
    let states: Vec<String> = states.iter().map(|state| (*state).to_owned()).collect();
    Ok(sqlx::query_as!(
        Item,
        "-- bulk_items
        SELECT ordinal, execution_id, seen, state, note FROM sexton.bulk_items
        WHERE bulk_id = $1 AND ordinal > $3 AND (cardinality($2::text[]) = 0 OR state = ANY ($2))
        ORDER BY ordinal LIMIT $4",
        bulk,
        &states,
        after,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}
