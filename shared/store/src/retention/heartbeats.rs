//! Heartbeats, and the addresses that nobody uses any more.

use super::{Position, PrunedBatch, days_before, read_now};
use crate::{Now, Store, StoreError};

/// Removes heartbeats that were written before the cut, whatever became of them, and then the addresses of which none is left. A
/// sender adds an address again that is needed after all.
///
/// Ids ascend with the time of writing, so a batch with a younger one is the last. One that a clock wrote that was ahead ends nothing.
pub(super) async fn remove(
    store: &Store,
    position: &mut Position,
    days: i32,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let now = read_now(store, now).await?;
    let cut = days_before(now, days);
    let rows = sqlx::query!(
        r#"-- retention_heartbeats
        SELECT id, created_at < $3 AS "is_old!", created_at BETWEEN $3 AND $4 AS "is_young!"
        FROM sexton.heartbeats WHERE id > $1 ORDER BY id LIMIT $2"#,
        position.number,
        limit,
        cut,
        now
    )
    .fetch_all(store.with_timeout())
    .await?;
    let old: Vec<i64> = rows.iter().filter(|row| row.is_old).map(|row| row.id).collect();
    let mut removed = 0;
    if !old.is_empty() {
        removed = sqlx::query!(
            "-- prune_heartbeats
            DELETE FROM sexton.heartbeats WHERE id = ANY (ARRAY(
                SELECT id FROM sexton.heartbeats WHERE id = ANY ($1) ORDER BY id FOR UPDATE SKIP LOCKED))",
            &old
        )
        .execute(store.with_timeout())
        .await?
        .rows_affected();
    }
    position.number = rows.last().map_or(position.number, |row| row.id);
    let mut is_last = (rows.len() as i64) < limit || rows.iter().any(|row| row.is_young);
    if is_last {
        let addresses = sqlx::query!(
            "-- prune_heartbeat_addresses
            DELETE FROM sexton.heartbeat_addresses WHERE address = ANY (ARRAY(
                SELECT a.address FROM sexton.heartbeat_addresses a
                WHERE NOT EXISTS (SELECT FROM sexton.heartbeats h WHERE h.address = a.address)
                ORDER BY a.address LIMIT $1 FOR UPDATE SKIP LOCKED))",
            limit
        )
        .execute(store.with_timeout())
        .await?
        .rows_affected();
        removed += addresses;
        is_last = addresses < limit.unsigned_abs();
    }
    Ok(PrunedBatch { removed, is_last, stripped: 0 })
}
