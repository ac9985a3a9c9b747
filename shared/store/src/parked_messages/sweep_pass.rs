//! The record of a sweep: which executions' messages it has kept, and which failed rows it has not met.
//!
//! A failed queue may be longer than a process can remember, so a pass records in a scratch table whose message it
//! has kept, batch by batch, each committed by itself: the transaction of the pass's lock never writes, and so blocks
//! nobody.
//!
//! **Two passes at once** happen when a process was frozen for longer than its lock lives. Each uses only its own
//! rows, by the instant when it began. A pass begins by removing other passes' rows, their markers first; and a pass
//! without its marker marks nothing as unpublished. So a pass that wakes up, or continues after the server has
//! crashed and emptied the table, does not take forgotten executions for missing ones.
//!
//! **Plans.** The table is empty, and a moment later long: a plan made while it was empty, and kept, would read all
//! of it for each row. So each statement that reads it is planned anew.

use chrono::{DateTime, Utc};
use sexton_model::id::ExecutionId;
use uuid::Uuid;

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::{Now, Store, StoreError};

/// The row that shows that a pass's record is complete.
const PASS_MARKER: Uuid = Uuid::nil();
/// Maximum number of rows removed by one statement.
const MAX_BATCH_REMOVALS: i64 = 50_000;

/// Begins the record of the pass begun at `pass`, and removes those of other passes.
///
/// # Errors
///
/// [`StoreError`]; the pass must not begin.
pub async fn begin_pass(store: &Store, pass: DateTime<Utc>) -> Result<(), StoreError> {
    forget(store, None).await?;
    sqlx::query!(
        "-- begin_sweep_kept
        INSERT INTO sexton.sweep_kept (pass, execution_id) VALUES ($1, $2)",
        pass,
        PASS_MARKER
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}

/// Removes the record of the pass begun at `pass`.
///
/// # Errors
///
/// [`StoreError`]: the next pass removes what is left.
pub async fn end_pass(store: &Store, pass: DateTime<Utc>) -> Result<(), StoreError> {
    forget(store, Some(pass)).await
}

/// Removes the record of a pass, or of all of them, in statements of a bounded size.
async fn forget(store: &Store, pass: Option<DateTime<Utc>>) -> Result<(), StoreError> {
    sqlx::query!(
        "-- end_sweep_kept
        DELETE FROM sexton.sweep_kept WHERE execution_id = $1 AND (pass = $2 OR $2 IS NULL)",
        PASS_MARKER,
        pass
    )
    .execute(store.with_timeout())
    .await?;
    loop {
        let done = sqlx::query!(
            "-- forget_sweep_kept
            DELETE FROM sexton.sweep_kept WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM sexton.sweep_kept WHERE pass = $2 OR $2 IS NULL LIMIT $1))",
            MAX_BATCH_REMOVALS,
            pass
        )
        .execute(store.with_timeout())
        .await?;
        if done.rows_affected() < MAX_BATCH_REMOVALS as u64 {
            return Ok(());
        }
    }
}

/// Records that the pass keeps the messages of these executions. Call it before the next batch is judged.
///
/// # Errors
///
/// [`StoreError`]; the pass is over.
pub async fn record_kept(
    store: &Store,
    pass: DateTime<Utc>,
    ids: &[ExecutionId],
) -> Result<(), StoreError> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.get()).collect();
    sqlx::query!(
        "-- sweep_keeps
        INSERT INTO sexton.sweep_kept (pass, execution_id) SELECT $1, * FROM unnest($2::uuid[])
        ON CONFLICT DO NOTHING",
        pass,
        &ids
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}

/// A position among the failed rows, which are scanned from the oldest failure on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScanPosition {
    finished_at: DateTime<Utc>,
    id: Uuid,
}

impl ScanPosition {
    /// Before all rows.
    pub const START: Self = Self { finished_at: DateTime::UNIX_EPOCH, id: Uuid::nil() };
}

/// The result of scanning some failed rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnpublishedScan {
    /// Number of tickets marked as unpublished.
    pub unpublished: u64,
    /// Where the next scan begins.
    pub upto: ScanPosition,
}

/// Scans up to `limit` failed rows after a position, and marks parked tickets as unpublished that were published
/// before `pass`, when a complete sweep began, and that it has not kept. `None`: no more rows.
///
/// With `empty` the queue was empty at `pass`, and no sweep is needed. A pass whose record is lost marks nothing.
///
/// # Errors
///
/// [`StoreError`]: these may be marked or not; a repeated call skips the marked ones.
pub async fn mark_unseen_unpublished(
    store: &Store,
    pass: DateTime<Utc>,
    empty: bool,
    after: ScanPosition,
    limit: i64,
    now: Now,
) -> Result<Option<UnpublishedScan>, StoreError> {
    let mut tx = store.begin().await?;
    sqlx::query("SET LOCAL plan_cache_mode = force_custom_plan")
        .execute(WithTimeout(&mut *tx))
        .await?;
    // OFFSET 0: each row is looked up by itself, in the index, and the table is never read as a whole.
    let row = sqlx::query!(
        r#"-- mark_unseen_unpublished
        WITH page AS MATERIALIZED (
            SELECT e.id, e.finished_at, e.ticket_published_at < $1 AND k.kept IS NULL AS missing
            FROM (SELECT id, finished_at, ticket_published_at FROM sexton.executions
                  WHERE state = 'failed' AND (finished_at, id) > ($2, $3)
                  ORDER BY finished_at, id LIMIT $4) e
            LEFT JOIN LATERAL (SELECT true AS kept FROM sexton.sweep_kept
                               WHERE pass = $1 AND execution_id = e.id OFFSET 0) k ON true),
        l AS MATERIALIZED (
            SELECT e.id FROM sexton.executions e JOIN page ON page.id = e.id AND page.missing
            WHERE e.state = 'failed' AND e.ticket_published_at < $1
              AND ($5 OR EXISTS (SELECT FROM sexton.sweep_kept WHERE pass = $1 AND execution_id = $6))
            ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED),
        marked AS (
            UPDATE sexton.executions e SET ticket_published_at = NULL, rev = e.rev + 1,
                relay_after = coalesce($7, now())
            FROM l WHERE e.id = l.id RETURNING 1)
        SELECT finished_at AS "finished_at!", id, (SELECT count(*) FROM marked) AS "unpublished!"
        FROM page ORDER BY finished_at DESC, id DESC LIMIT 1"#,
        pass,
        after.finished_at,
        after.id,
        limit,
        empty,
        PASS_MARKER,
        now
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await?;
    commit(tx).await?;
    Ok(row.map(|row| UnpublishedScan {
        unpublished: row.unpublished as u64,
        upto: ScanPosition { finished_at: row.finished_at, id: row.id },
    }))
}
