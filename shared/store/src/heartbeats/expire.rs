//! Drops heartbeats that are too old, or behind which too many of their job wait.

use sexton_model::duration::to_millis;
use sexton_model::heartbeat::{MAX_AGE, MAX_OF_JOB};

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::{Now, Store, StoreError};

/// Most heartbeats that are dropped at once.
const MAX_DROPPED: i64 = 10_000;

/// What was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Expired {
    /// The number of heartbeats.
    pub dropped: usize,
    /// Whether there may be more to drop.
    pub more: bool,
}

/// Drops heartbeats that have waited for [`MAX_AGE`], and the oldest ones of a job beyond [`MAX_OF_JOB`]. Those that were never tried
/// leave no row. Adds addresses that are missing.
///
/// # Errors
///
/// Those of the database; nothing was dropped.
pub async fn expire(store: &Store, now: Now) -> Result<Expired, StoreError> {
    let mut tx = store.begin().await?;
    let at = instant(&mut tx, now).await?;
    // Retention may have removed an address at the moment at which a job got it.
    sqlx::query!(
        "-- add_heartbeat_addresses
        INSERT INTO sexton.heartbeat_addresses (address)
        SELECT DISTINCT h.address FROM sexton.heartbeats h
        WHERE h.state = 'pending' AND NOT EXISTS (SELECT FROM sexton.heartbeat_addresses a WHERE a.address = h.address)
        ON CONFLICT DO NOTHING"
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    let rows = sqlx::query!(
        r#"-- expire_heartbeats
        WITH old AS (
            SELECT p.id FROM (
                SELECT h.id, h.created_at, row_number() OVER (PARTITION BY h.job_id ORDER BY h.id DESC) AS place
                FROM sexton.heartbeats h WHERE h.state = 'pending') p
            WHERE p.place > $2 OR p.created_at <= $1::timestamptz - $3 * interval '1 millisecond'
            ORDER BY p.id LIMIT $4)
        SELECT h.id, h.tries FROM sexton.heartbeats h JOIN old ON old.id = h.id
        WHERE h.state = 'pending' ORDER BY h.id FOR UPDATE OF h SKIP LOCKED"#,
        at,
        MAX_OF_JOB,
        to_millis(MAX_AGE) as f64,
        MAX_DROPPED
    )
    .fetch_all(WithTimeout(&mut *tx))
    .await?;
    let ids = |tried: bool| -> Vec<i64> {
        rows.iter().filter(|row| (row.tries > 0) == tried).map(|row| row.id).collect()
    };
    sqlx::query!(
        "-- remove_untried_heartbeats\nDELETE FROM sexton.heartbeats WHERE id = ANY ($1)",
        &ids(false)
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    sqlx::query!(
        "-- drop_heartbeats
        UPDATE sexton.heartbeats SET state = 'dropped', finished_at = $2 WHERE id = ANY ($1)",
        &ids(true),
        at
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    commit(tx).await?;
    Ok(Expired { dropped: rows.len(), more: rows.len() as i64 >= MAX_DROPPED })
}
