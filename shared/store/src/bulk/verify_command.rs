//! Records who runs a verify command on a bulk's items, and counts the items without an answer.

use serde_json::json;
use sexton_model::ticket::truncate;

use crate::operator::AuditContext;
use crate::{Store, StoreError};

/// Maximum length of a command in the audit, in bytes.
const MAX_COMMAND_BYTES: usize = 4_000;

/// Records that `by` is about to run `command` for a bulk's items without an answer. Returns whether there are such
/// items: `false`, and nothing is recorded, if all have an answer or the bulk does not run. A crash afterwards leaves
/// the record of a command that has not run; each further run is recorded as well.
///
/// # Errors
///
/// Those of the database.
pub async fn record_verify_command(
    store: &Store,
    bulk: i64,
    command: &str,
    by: AuditContext<'_>,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "-- record_who_asks
        INSERT INTO sexton.operator_actions (at, actor, action, reason, after, bulk_id)
        SELECT now(), $2, 'bulk_verify', $3, $4, b.id FROM sexton.bulks b
        WHERE b.id = $1 AND b.verify = 'command' AND (b.state = 'preparing' OR (b.state = 'running'
            AND EXISTS (SELECT FROM sexton.bulk_items WHERE bulk_id = b.id AND state = 'unasked')))",
        bulk,
        by.actor,
        by.reason,
        json!({"bulk": bulk, "command": truncate(command, MAX_COMMAND_BYTES)})
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Counts the items of a bulk that wait for a command's answer. While the bulk is being prepared, more may follow.
///
/// # Errors
///
/// Those of the database.
pub async fn count_unasked(store: &Store, bulk: i64) -> Result<u64, StoreError> {
    let count = sqlx::query_scalar!(
        r#"-- unasked_items
        SELECT count(*) AS "count!" FROM sexton.bulk_items WHERE bulk_id = $1 AND state = 'unasked'"#,
        bulk
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok(count as u64)
}
