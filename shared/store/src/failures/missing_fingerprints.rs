//! Adds fingerprints to failures that were recorded without.

use sexton_model::fingerprint::fingerprint;
use uuid::Uuid;

use crate::{Store, StoreError};

/// An execution whose failure has no fingerprint yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingFingerprint {
    /// The execution.
    pub id: Uuid,
    /// The number of its next ticket, which identifies the failure.
    pub attempt: i32,
    /// Class of the error.
    pub class: String,
    /// The last attempt's message; the execution's also names crashes.
    pub message: String,
}

/// Returns failures without a fingerprint; at most `limit`.
pub async fn list_missing_fingerprints(
    store: &Store,
    limit: i64,
) -> Result<Vec<MissingFingerprint>, StoreError> {
    Ok(sqlx::query_as!(
        MissingFingerprint,
        r#"-- unread_failures
        SELECT e.id, e.attempt, coalesce(a.error_class, e.error_class, '') AS "class!",
               coalesce(a.error_message, e.error_message, '') AS "message!"
        FROM (SELECT execution_id FROM sexton.failures WHERE fingerprint IS NULL
              ORDER BY execution_id LIMIT $1) f
        JOIN sexton.executions e ON e.id = f.execution_id
        LEFT JOIN sexton.attempts a ON a.execution_id = e.id AND a.number = e.attempt - 1"#,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Records the fingerprints of failures, each unless the execution has moved on; the trigger copies them into
/// `failures`, and inserts a missing row. Waits for locked rows, for as long as a statement may. Returns how many.
pub async fn record_fingerprints(
    store: &Store,
    of: &[MissingFingerprint],
) -> Result<u64, StoreError> {
    let ids: Vec<Uuid> = of.iter().map(|unread| unread.id).collect();
    let attempts: Vec<i32> = of.iter().map(|unread| unread.attempt).collect();
    let fingerprints: Vec<String> =
        of.iter().map(|unread| fingerprint(&unread.class, &unread.message).to_string()).collect();
    let done = sqlx::query!(
        "-- record_fingerprints
        WITH l AS MATERIALIZED (
            SELECT e.id, r.fingerprint
            FROM sexton.executions e
            JOIN unnest($1::uuid[], $2::int[], $3::text[]) AS r (id, attempt, fingerprint) ON r.id = e.id
            WHERE e.attempt = r.attempt AND e.state IN ('failed', 'discarded')
            ORDER BY e.id FOR NO KEY UPDATE OF e)
        UPDATE sexton.executions e SET fingerprint = l.fingerprint FROM l WHERE e.id = l.id",
        &ids,
        &attempts,
        &fingerprints
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected())
}
