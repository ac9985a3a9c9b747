//! Removes the range of a service that is gone.
//!
//! One transaction: the range and the audit. A crash before the commit leaves the range; after it, the repeated call finds none.
//! An apply at the same time may give a job a key of the range; `sexton keys check` finds it, as after an assignment.

use chrono::{DateTime, Utc};
use serde_json::json;
use sexton_model::lock_key::range::KeyRange;
use sqlx::PgConnection;

use super::RangeRow;
use super::assign::take_turn;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::operator::{AuditContext, is_lock_timeout, set_lock_timeout};
use crate::{Now, Store, StoreError};

/// Number of jobs that a refusal names.
const SHOWN_JOBS: i64 = 3;

/// Why nothing was removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// The service has no range.
    #[error("the service has no range")]
    NoRange,
    /// Jobs have keys of the range: some of them, each with its key.
    #[error("jobs use keys of {range}: {}", .jobs.join(", "))]
    InUse {
        /// The range.
        range: KeyRange,
        /// `name (key)`, in the order of the keys.
        jobs: Vec<String>,
    },
    /// Somebody assigned or removed ranges for 5 s. Try again.
    #[error("somebody else changes ranges right now; try again")]
    Locked,
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for RemoveError {
    fn from(error: sqlx::Error) -> Self {
        if is_lock_timeout(&error) { Self::Locked } else { Self::Store(error.into()) }
    }
}

/// Removes the range of a service and returns it; with `dry_run` it stays.
///
/// # Errors
///
/// [`RemoveError`]; nothing was removed.
pub async fn remove(
    store: &Store,
    service: &str,
    dry_run: bool,
    by: AuditContext<'_>,
    now: Now,
) -> Result<KeyRange, RemoveError> {
    let mut tx = store.begin().await?;
    set_lock_timeout(&mut tx).await?;
    if !dry_run {
        take_turn(&mut tx).await?;
    }
    let row = sqlx::query_as!(
        RangeRow,
        "-- range_of_service
        SELECT service, first_key, keys FROM sexton.lock_key_ranges WHERE service = $1",
        service
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await?;
    let range = row.ok_or(RemoveError::NoRange)?.range()?;
    let jobs = jobs_within(&mut tx, &range).await?;
    if !jobs.is_empty() {
        return Err(RemoveError::InUse { range, jobs });
    }
    if dry_run {
        return Ok(range);
    }
    write(&mut tx, &range, by, now).await?;
    commit(tx).await?;
    Ok(range)
}

/// Returns some of the jobs that have keys of a range, whatever service they are of.
async fn jobs_within(
    connection: &mut PgConnection,
    range: &KeyRange,
) -> Result<Vec<String>, RemoveError> {
    Ok(sqlx::query_scalar!(
        r#"-- jobs_within_range
        SELECT name || ' (' || lock_key || ')' AS "job!" FROM sexton.jobs
        WHERE lock_key BETWEEN $1 AND $2 AND deleted_at IS NULL ORDER BY lock_key LIMIT $3"#,
        range.first(),
        range.last(),
        SHOWN_JOBS
    )
    .fetch_all(WithTimeout(connection))
    .await?)
}

async fn write(
    connection: &mut PgConnection,
    range: &KeyRange,
    by: AuditContext<'_>,
    now: Option<DateTime<Utc>>,
) -> Result<(), RemoveError> {
    let done = sqlx::query!(
        "-- remove_range
        WITH removed AS (DELETE FROM sexton.lock_key_ranges WHERE service = $1 RETURNING service)
        INSERT INTO sexton.operator_actions (at, actor, action, reason, before)
        SELECT coalesce($2, clock_timestamp()), $3, 'remove_keys', $4, $5 FROM removed",
        range.service(),
        now,
        by.actor,
        by.reason,
        json!(range)
    )
    .execute(WithTimeout(connection))
    .await?;
    if done.rows_affected() != 1 {
        let value = range.service().to_owned();
        return Err(StoreError::Inconsistent { place: "lock_key_ranges.service", value }.into());
    }
    Ok(())
}
