//! Frees a lock row by hand.
//!
//! One transaction locks the row, checks that the operator's holder still has it, ends its time and records who did it and
//! why. The row stays. Its holder finds the row free at its next extension, and stops its work; until then its work and
//! that of the next holder overlap. A crash before the commit changes nothing.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::rows::{LockRow, RowState, read_row};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::operator::{AuditContext, is_lock_timeout, set_lock_timeout};
use crate::{Store, StoreError};

/// The row to free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowBreak<'a> {
    /// Its name.
    pub name: &'a str,
    /// The holder that the operator saw.
    pub locked_by: &'a str,
    /// The instant since which that holder had it.
    pub locked_at: DateTime<Utc>,
    /// Whether to free it from an attempt that runs.
    pub force: bool,
}

/// A row that was freed.
#[derive(Clone, PartialEq, Debug)]
pub struct BrokenRow {
    /// The row as it was.
    pub before: LockRow,
    /// The end of its time now: the present.
    pub lock_until: DateTime<Utc>,
}

/// Why a row was not freed. It is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum BreakError {
    /// There is no row of this name.
    #[error("there is no lock row {0:?}")]
    Missing(String),
    /// It is free already.
    #[error("lock row {:?} is free already", .0.name)]
    Free(Box<LockRow>),
    /// Another holder has it, or the same one has taken it again.
    #[error("lock row {:?} has another holder since you looked: {}", .0.name, .0.locked_by)]
    Changed(Box<LockRow>),
    /// The attempt that took it runs, as far as the rows say.
    #[error("lock row {:?} is held for an attempt that runs", .0.name)]
    Running(Box<LockRow>),
    /// Another transaction kept it locked for 5 s. Try again.
    #[error("lock row {0:?} is written by somebody else; try again")]
    Locked(String),
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Frees a row, if the holder of `request` has it.
///
/// # Errors
///
/// [`BreakError::Changed`] for another holder; [`BreakError::Running`] unless the request forces it.
pub async fn break_row(
    store: &Store,
    request: RowBreak<'_>,
    by: AuditContext<'_>,
) -> Result<BrokenRow, BreakError> {
    let name = request.name;
    let mut tx = store.begin().await.map_err(StoreError::from)?;
    set_lock_timeout(&mut tx).await.map_err(StoreError::from)?;
    // An extension or a release that is under way comes first.
    let locked = sqlx::query!(
        "-- lock_lock_row
        SELECT name FROM sexton.lock_rows WHERE name = $1 FOR NO KEY UPDATE",
        name
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await;
    match locked {
        Ok(Some(_)) => {}
        Ok(None) => return Err(BreakError::Missing(name.to_owned())),
        Err(error) if is_lock_timeout(&error) => return Err(BreakError::Locked(name.to_owned())),
        Err(error) => return Err(StoreError::from(error).into()),
    }
    let row = read_row(WithTimeout(&mut *tx), name).await?;
    let before = row.ok_or_else(|| BreakError::Missing(name.to_owned()))?;
    if before.state == RowState::Free {
        return Err(BreakError::Free(Box::new(before)));
    }
    if before.locked_by != request.locked_by || before.locked_at != request.locked_at {
        return Err(BreakError::Changed(Box::new(before)));
    }
    let attempt = before.attempt.as_ref();
    if !request.force && attempt.is_some_and(super::LockAttempt::is_running) {
        return Err(BreakError::Running(Box::new(before)));
    }
    let lock_until = sqlx::query_scalar!(
        r#"-- break_lock_row
        -- Well in the past: an extension that waits for this transaction compares with an instant of before.
        UPDATE sexton.lock_rows SET lock_until = timezone('utc', clock_timestamp()) - interval '1 minute' WHERE name = $1
        RETURNING (lock_until + interval '1 minute') AT TIME ZONE 'UTC' AS "lock_until!""#,
        name
    )
    .fetch_one(WithTimeout(&mut *tx))
    .await
    .map_err(StoreError::from)?;
    sqlx::query!(
        "-- record_broken_lock
        INSERT INTO sexton.operator_actions (at, actor, action, job_id, execution_id, reason, before, after)
        VALUES ($1, $2, 'break_lock',
                (SELECT id FROM sexton.jobs WHERE lock_row = $3 AND name = $4 AND deleted_at IS NULL), $5, $6, $7, $8)",
        lock_until,
        by.actor,
        name,
        attempt.map(|attempt| &attempt.job).or(before.jobs.names.first()).map(String::as_str),
        attempt.map(|attempt| attempt.execution_id),
        by.reason,
        json!({
            "lock": name, "locked_by": before.locked_by, "locked_at": before.locked_at,
            "lock_until": before.lock_until,
        }),
        json!({"lock": name, "lock_until": lock_until, "forced": request.force})
    )
    .execute(WithTimeout(&mut *tx))
    .await
    .map_err(StoreError::from)?;
    commit(tx).await.map_err(StoreError::from)?;
    Ok(BrokenRow { before, lock_until })
}
