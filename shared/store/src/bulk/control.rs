//! Stops and resumes bulks.

use serde_json::json;
use sexton_model::bulk::BulkState;

use super::Bulk;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::error::parse_column;
use crate::notifications::Notification;
use crate::operator::{AuditContext, notify, set_lock_timeout};
use crate::{Store, StoreError};

/// Why the request was refused.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The bulk does not exist.
    #[error("there is no bulk {0}")]
    Missing(i64),
    /// The bulk's state does not allow this.
    #[error("bulk {} is {}", .0.id, .0.state)]
    WrongState(Box<Bulk>),
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Stops a bulk: finished items stay done, and the others are left. A batch that is under way ends first.
///
/// # Errors
///
/// [`ControlError::WrongState`] when it is stopped or done.
pub async fn stop(store: &Store, id: i64, by: AuditContext<'_>) -> Result<(), ControlError> {
    change_state(store, id, by, "bulk_stop", |state, _| state.stopped()).await
}

/// Stops a bulk that cannot be carried out, for the reason of `by`. It can be resumed once the cause is removed; an
/// unfinished canary then delays the other items again. A bulk that does not run stays as it is.
///
/// # Errors
///
/// [`ControlError::WrongState`] unless it is being prepared or runs.
pub async fn abort(store: &Store, id: i64, by: AuditContext<'_>) -> Result<(), ControlError> {
    let next = |state: BulkState, _| if state.is_alive() { state.stopped() } else { None };
    change_state(store, id, by, "bulk_stop", next).await
}

/// Resumes a bulk that was stopped or that its canary has paused. This overrules the canary: it does not delay the
/// other items again.
///
/// # Errors
///
/// [`ControlError::WrongState`] unless it is stopped or paused.
pub async fn resume(store: &Store, id: i64, by: AuditContext<'_>) -> Result<(), ControlError> {
    change_state(store, id, by, "bulk_resume", BulkState::resumed).await
}

async fn change_state(
    store: &Store,
    id: i64,
    by: AuditContext<'_>,
    action: &str,
    next: impl FnOnce(BulkState, bool) -> Option<BulkState> + Send,
) -> Result<(), ControlError> {
    let mut tx = store.begin().await.map_err(StoreError::from)?;
    set_lock_timeout(&mut tx).await.map_err(StoreError::from)?;
    let row = sqlx::query!(
        r#"-- lock_bulk
        SELECT state, prepared_at IS NOT NULL AS "prepared!" FROM sexton.bulks WHERE id = $1
        FOR NO KEY UPDATE"#,
        id
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await
    .map_err(StoreError::from)?
    .ok_or(ControlError::Missing(id))?;
    let state = parse_column("bulks.state", &row.state, BulkState::parse)?;
    let Some(to) = next(state, row.prepared) else {
        drop(tx);
        let bulk = super::find(store, id).await?.ok_or(ControlError::Missing(id))?;
        return Err(ControlError::WrongState(Box::new(bulk)));
    };
    sqlx::query!(
        "-- steer_bulk
        WITH u AS (
            UPDATE sexton.bulks SET state = $2, why = CASE WHEN $3 THEN coalesce($5, why) END,
                stopped_by = CASE WHEN $3 THEN $4 END, ended_at = CASE WHEN $3 THEN now() END,
                canary_passed = canary_passed OR (state = 'paused' AND NOT $3), paced_since = NULL, paced = 0
            WHERE id = $1)
        INSERT INTO sexton.operator_actions (at, actor, action, reason, before, after, bulk_id)
        VALUES (now(), $4, $6, $5, $7, $8, $1)",
        id,
        to.as_str(),
        to == BulkState::Stopped,
        by.actor,
        by.reason,
        action,
        json!({"bulk": id, "state": state.as_str()}),
        json!({"bulk": id, "state": to.as_str()})
    )
    .execute(WithTimeout(&mut *tx))
    .await
    .map_err(StoreError::from)?;
    notify(&mut tx, Notification::Bulk).await?;
    commit(tx).await.map_err(StoreError::from)?;
    Ok(())
}
