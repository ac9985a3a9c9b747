//! What a pass of the sweep has kept, and what of the rows it has not met.
//!
//! A failed queue may be longer than what a process can remember, so a pass writes down in a scratch table whose
//! message it has kept, batch by batch, each committed by itself: the transaction of the pass's lock stays
//! one that writes nothing, and so is in nobody's way.
//!
//! **Two passes at once** happen when a process was frozen for longer than its lock lives. Each knows its own
//! executions only, by the instant when it began. A pass begins by removing what others have left, their lines
//! first; and for a pass without its line nothing is owed. So one that wakes up, or goes on after the server
//! has crashed and emptied the table, does not take for missing what it has only forgotten.
//!
//! **Plans.** The table is empty, and a moment later long: a plan that was made for it when it was empty, and
//! kept, would read all of it for each row. So each statement that reads it is planned anew.

use chrono::{DateTime, Utc};
use sexton_model::id::ExecutionId;
use uuid::Uuid;

use crate::client_timeout::{WithTimeout, commit};
use crate::{Now, Store, StoreError};

/// The line of a pass, as long as what it has kept is known.
const PASS_MARKER: Uuid = Uuid::nil();
/// Removed by one statement.
const MAX_BATCH_REMOVALS: i64 = 50_000;

/// Begins to write down what the pass begun at `pass` keeps; what is left of other passes is forgotten.
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

/// Forgets what the pass begun at `pass` has kept.
///
/// # Errors
///
/// [`StoreError`]: the rest is left to the next pass.
pub async fn end_pass(store: &Store, pass: DateTime<Utc>) -> Result<(), StoreError> {
    forget(store, Some(pass)).await
}

/// Forgets what a pass has kept, or all of them, in statements of a bounded size.
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

/// Writes down that the pass keeps the messages of these executions. Before the next batch is judged.
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

/// A place among the failed rows, which are gone through from the oldest failure on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScanPosition {
    finished_at: DateTime<Utc>,
    id: Uuid,
}

impl ScanPosition {
    /// Before all.
    pub const START: Self = Self { finished_at: DateTime::UNIX_EPOCH, id: Uuid::nil() };
}

/// What a look at some failed rows came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnpublishedScan {
    /// How many owe their message again.
    pub unpublished: u64,
    /// Where the next look begins.
    pub upto: ScanPosition,
}

/// Looks at up to `limit` failed rows after a place, and owes again the parked tickets that were published
/// before `pass`, when a complete pass of the sweep began, and that it has not kept. `None`: there are no
/// more rows.
///
/// With `empty` the queue was empty at `pass`, and there need not have been a pass. Of a pass that is not
/// written down any more nothing is owed.
///
/// # Errors
///
/// [`StoreError`]: these may be owed or not; asked again, what is owed is passed over.
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
        r#"-- owe_unseen_failed
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
        owed AS (
            UPDATE sexton.executions e SET ticket_published_at = NULL, rev = e.rev + 1,
                relay_after = coalesce($7, now())
            FROM l WHERE e.id = l.id RETURNING 1)
        SELECT finished_at AS "finished_at!", id, (SELECT count(*) FROM owed) AS "owed!"
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
        unpublished: row.owed as u64,
        upto: ScanPosition { finished_at: row.finished_at, id: row.id },
    }))
}
