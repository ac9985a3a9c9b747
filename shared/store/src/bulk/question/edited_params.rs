//! An answer about other params does not count.

use std::collections::HashSet;

use sqlx::PgConnection;

use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;

/// Returns the items among these whose executions' params have changed since their question, or whose question
/// retention has removed, so that a change cannot be ruled out. Call it with the executions locked: it sees an
/// earlier edit, and the lock keeps later ones out.
pub(in crate::bulk) async fn find_edited(
    connection: &mut PgConnection,
    bulk: i64,
    ordinals: &[i64],
) -> Result<HashSet<i64>, StoreError> {
    let rows = sqlx::query_scalar!(
        "-- items_edited_since_asked
        SELECT i.ordinal FROM sexton.bulk_questions q
        JOIN sexton.bulk_items i ON i.bulk_id = q.bulk_id AND i.ordinal = q.ordinal
        LEFT JOIN sexton.executions question ON question.id = q.question
        JOIN sexton.executions e ON e.id = i.execution_id
        WHERE q.bulk_id = $1 AND q.ordinal = ANY ($2)
          AND (question.id IS NULL OR question.params IS DISTINCT FROM e.params)",
        bulk,
        ordinals
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(rows.into_iter().collect())
}
