//! Repairs of `sexton doctor --fix`. Each may be repeated, and runs while the platform works.
//!
//! The audit records every repair *before* it is made, since some are made on the broker: a crash in between leaves a
//! record without a repair, never a repair without a record.

use serde_json::json;

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::operator::AuditContext;
use crate::{Now, Store, StoreError};

/// Records that a repair is about to be made.
pub async fn record(
    store: &Store,
    finding: &str,
    by: AuditContext<'_>,
    now: Now,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- record_doctor_fix
        INSERT INTO sexton.operator_actions (at, actor, action, reason, after)
        VALUES (coalesce($1, now()), $2, 'doctor_fix', $3, $4)",
        now,
        by.actor,
        by.reason,
        json!({"finding": finding})
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}

/// Marks processes without a heartbeat for `silent_ms` and without open attempts as stopped. One that still lives
/// clears the mark with its next heartbeat. Returns their names.
pub async fn mark_silent_stopped(
    store: &Store,
    silent_ms: i64,
    now: Now,
) -> Result<Vec<String>, StoreError> {
    let mut tx = store.begin().await?;
    let names = sqlx::query_scalar!(
        "-- doctor_stop_silent
        UPDATE sexton.instances i SET stopped_at = coalesce($2, now()), ready = false
        WHERE stopped_at IS NULL
          AND heartbeat_at < coalesce($2, now()) - $1 * interval '1 millisecond'
          AND NOT EXISTS (SELECT FROM sexton.executions e WHERE e.state = 'running' AND e.worker_id = i.id)
        RETURNING name",
        silent_ms as f64,
        now
    )
    .fetch_all(WithTimeout(&mut *tx))
    .await?;
    commit(tx).await?;
    Ok(names)
}
