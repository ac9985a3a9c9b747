//! Jobs without any other row: deleted ones, and finished one-shot jobs.
//!
//! The foreign keys decide: a job is removed when it has no execution, no gap and no held firing any more, with its
//! revisions. Its failed executions stay until an operator discards them, and the job with them.
//!
//! Only its row says that a finished one-shot job has run: applied again, it would be a new one. So it stays as long
//! as an applied file contains it, and as long afterwards as a caller's own key deduplicates.

use uuid::Uuid;

use super::{OWN_KEY_RETENTION_DAYS, Position, PrunedBatch, days_before, read_now};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::{Now, Store, StoreError};

/// Removes jobs among those read behind the position.
pub(super) async fn remove(
    store: &Store,
    position: &mut Position,
    days: i32,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let now = read_now(store, now).await?;
    let (cut, over) = (days_before(now, days), days_before(now, days.max(OWN_KEY_RETENTION_DAYS)));
    let rows = sqlx::query!(
        r#"-- retention_jobs
        SELECT id, (deleted_at IS NOT NULL OR (schedule_kind = 'once' AND next_fire_at IS NULL)) AS "may_go!"
        FROM sexton.jobs WHERE id > $1 ORDER BY id LIMIT $2"#,
        position.id,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?;
    let ids: Vec<Uuid> = rows.iter().filter(|row| row.may_go).map(|row| row.id).collect();
    let mut removed = 0;
    if !ids.is_empty() {
        let mut tx = store.begin().await?;
        let locked = sqlx::query_scalar!(
            "-- retention_lock_jobs
            SELECT id FROM sexton.jobs j
            WHERE id = ANY ($1)
              AND (deleted_at < $2
                   OR (deleted_at IS NULL AND schedule_kind = 'once' AND next_fire_at IS NULL
                       AND greatest(updated_at, applied_at) < $3))
              AND NOT EXISTS (SELECT FROM sexton.executions WHERE job_id = j.id)
              AND NOT EXISTS (SELECT FROM sexton.gaps WHERE job_id = j.id)
              AND NOT EXISTS (SELECT FROM sexton.held_firings WHERE job_id = j.id)
            ORDER BY id FOR UPDATE OF j SKIP LOCKED",
            &ids,
            cut,
            over
        )
        .fetch_all(WithTimeout(&mut *tx))
        .await?;
        // Checked again: a transaction that had a job locked before may have claimed for it. From now on none can.
        removed = sqlx::query!(
            "-- prune_jobs_that_are_over
            DELETE FROM sexton.jobs j WHERE id = ANY ($1)
              AND NOT EXISTS (SELECT FROM sexton.executions WHERE job_id = j.id)
              AND NOT EXISTS (SELECT FROM sexton.gaps WHERE job_id = j.id)
              AND NOT EXISTS (SELECT FROM sexton.held_firings WHERE job_id = j.id)",
            &locked
        )
        .execute(WithTimeout(&mut *tx))
        .await?
        .rows_affected();
        commit(tx).await?;
    }
    position.id = rows.last().map_or(position.id, |row| row.id);
    Ok(PrunedBatch { removed, is_last: (rows.len() as i64) < limit, stripped: 0 })
}
