//! The number of failed executions, counted often and cheaply.

use crate::{Store, StoreError};

/// The number of failed executions, and of those with their message in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailedCounts {
    /// Rows in `failed`.
    pub failed: u64,
    /// Of those, rows whose parked ticket was published.
    pub published: u64,
}

/// Counts the failed rows. Every scheduler does so each half minute, so it reads the failure index and not the rows.
pub async fn count_failed(store: &Store) -> Result<FailedCounts, StoreError> {
    let row =
        sqlx::query_file!("src/parked_messages/counts.sql").fetch_one(store.with_timeout()).await?;
    let [failed, unpublished] =
        [row.failed, row.unpublished].map(|count| u64::try_from(count).unwrap_or_default());
    Ok(FailedCounts { failed, published: failed.saturating_sub(unpublished) })
}
