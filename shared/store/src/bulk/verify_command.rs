//! Who asks a command of a bulk's items, and of how many nobody has answered for.

use serde_json::json;
use sexton_model::ticket::truncate;

use crate::operator::AuditContext;
use crate::{Store, StoreError};

/// The most of a command that the audit keeps, in bytes.
const MAX_COMMAND_BYTES: usize = 4_000;

/// Records that `by` is about to ask `command` of the items of a bulk that nobody has answered for. Returns
/// whether there is anything to ask: `false`, and nothing is recorded, if all are answered for, or the bulk does
/// not run. A crash after it leaves a record of what was not asked; whoever asks next is recorded as well.
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

/// How many items of a bulk wait for a command's answer. While it is being prepared there may be more to come.
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
