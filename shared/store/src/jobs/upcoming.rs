//! The jobs that are due soonest, for the console. Only reads.

use crate::{Store, StoreError};

/// Returns the names of the active jobs that are due soonest, at most `limit`, in that order.
pub async fn list_upcoming(store: &Store, limit: i64) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        "-- soonest_jobs
        SELECT name FROM sexton.jobs WHERE status = 'active' AND next_fire_at IS NOT NULL
        ORDER BY next_fire_at LIMIT $1",
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}
