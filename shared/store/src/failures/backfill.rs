//! Backfills failures from before the table `failures` existed, batch by batch.
//!
//! It walks the executions by their ids, once, from the first to the last that existed then; the trigger adds later
//! failures. A batch that is repeated, after a crash or by two schedulers, writes the same rows again.

use uuid::Uuid;

use super::missing_fingerprints::{MissingFingerprint, record_fingerprints};
use crate::{Store, StoreError};

/// The result of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BackfillProgress {
    /// Number of failed and discarded executions added.
    pub indexed: u64,
    /// Whether this was the last batch.
    pub done: bool,
}

/// Returns whether the backfill is complete. Until then lists of failures are incomplete.
pub async fn is_backfilled(store: &Store) -> Result<bool, StoreError> {
    let done = sqlx::query_scalar!(
        r#"-- failures_filled
        SELECT EXISTS (SELECT FROM sexton.failures_fill WHERE done_at IS NOT NULL) AS "done!""#
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok(done)
}

/// Adds the failures among the next `limit` executions.
///
/// # Errors
///
/// [`StoreError::TooSlow`] when another transaction keeps one of them locked: repeat the batch.
pub async fn backfill_failures(store: &Store, limit: i64) -> Result<BackfillProgress, StoreError> {
    let from = sqlx::query_scalar!(
        r#"-- failures_to_fill
        SELECT coalesce(filled_to, '00000000-0000-0000-0000-000000000000') AS "from!"
        FROM sexton.failures_fill WHERE done_at IS NULL"#
    )
    .fetch_optional(store.with_timeout())
    .await?;
    let Some(from) = from else { return Ok(BackfillProgress { indexed: 0, done: true }) };
    let rows = sqlx::query!(
        r#"-- failures_to_bring_in
        SELECT e.id, e.attempt, e.state IN ('failed', 'discarded') AS "is_failure!",
               coalesce(a.error_class, e.error_class, '') AS "class!",
               coalesce(a.error_message, e.error_message, '') AS "message!"
        FROM (SELECT * FROM sexton.executions WHERE id > $1 ORDER BY id LIMIT $2) e
        LEFT JOIN sexton.attempts a ON e.state IN ('failed', 'discarded')
                             AND a.execution_id = e.id AND a.number = e.attempt - 1
        ORDER BY e.id"#,
        from,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?;
    let done = (rows.len() as i64) < limit;
    let to: Option<Uuid> = rows.last().map(|row| row.id);
    let failures: Vec<MissingFingerprint> = rows
        .into_iter()
        .filter(|row| row.is_failure)
        .map(|row| MissingFingerprint {
            id: row.id,
            attempt: row.attempt,
            class: row.class,
            message: row.message,
        })
        .collect();
    let indexed = record_fingerprints(store, &failures).await?;
    sqlx::query!(
        "-- note_failures_filled
        UPDATE sexton.failures_fill SET filled_to = greatest(filled_to, $1),
            done_at = CASE WHEN $2 THEN now() END
        WHERE done_at IS NULL",
        to,
        done
    )
    .execute(store.with_timeout())
    .await?;
    Ok(BackfillProgress { indexed, done })
}
