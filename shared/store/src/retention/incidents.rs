//! Incidents that are over, with their timelines and notifications, and the tests of channels.

use super::{PrunedBatch, days_before, read_now};
use crate::{Now, Store, StoreError};

/// Incidents in a batch, for each hundred rows: with each go its timeline and its notifications.
const SHARE: i64 = 10;

/// Removes incidents that were resolved before the cut.
pub(super) async fn remove(
    store: &Store,
    days: i32,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let cut = days_before(read_now(store, now).await?, days);
    let limit = (limit / SHARE).max(1);
    sqlx::query!(
        "-- prune_channel_tests
        DELETE FROM sexton.notifications WHERE id = ANY (ARRAY(
            SELECT id FROM sexton.notifications WHERE incident_id IS NULL AND state <> 'pending' AND finished_at < $1
            ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED))",
        cut,
        limit
    )
    .execute(store.with_timeout())
    .await?;
    let removed = sqlx::query!(
        "-- prune_incidents
        DELETE FROM sexton.incidents WHERE id = ANY (ARRAY(
            SELECT id FROM sexton.incidents WHERE state = 'resolved' AND resolved_at < $1
            ORDER BY resolved_at LIMIT $2 FOR UPDATE SKIP LOCKED))",
        cut,
        limit
    )
    .execute(store.with_timeout())
    .await?
    .rows_affected();
    Ok(PrunedBatch { removed, is_last: removed < limit.unsigned_abs(), stripped: 0 })
}
