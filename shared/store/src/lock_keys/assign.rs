//! Assigns ranges to services, and changes them.
//!
//! One transaction: the ranges and the audit. A crash before the commit leaves nothing; after it, the repeated call finds that
//! nothing changes. Calls come one after another, so each of many that ask for the next free range gets another one; the
//! exclusion constraint refuses what any other program would write across it.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::lock_key::assignment::{RangeChange, RangeRequest, Refusal, plan};
use sexton_model::lock_key::range::KeyRange;
use sexton_model::lock_key::registry::Registry;
use sqlx::PgConnection;

use super::read_ranges;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::operator::{AuditContext, is_lock_timeout, set_lock_timeout};
use crate::platform_keys::ASSIGN_LOCK_KEY;
use crate::{Now, Store, StoreError};

/// Why nothing was assigned.
#[derive(Debug, thiserror::Error)]
pub enum AssignError {
    /// Some requests are refused, each with its index.
    #[error("{} of the ranges are refused", .0.len())]
    Refused(Vec<(usize, Refusal)>),
    /// Another assignment kept its lock for 5 s. Try again.
    #[error("somebody else assigns ranges right now; try again")]
    Locked,
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for AssignError {
    fn from(error: sqlx::Error) -> Self {
        if is_lock_timeout(&error) { Self::Locked } else { Self::Store(error.into()) }
    }
}

/// Grants all requests or none, and returns what becomes of each. With `dry_run` nothing is written. A range that stays as it
/// is gets no audit entry.
///
/// # Errors
///
/// [`AssignError`]; nothing was written.
pub async fn assign(
    store: &Store,
    requests: &[RangeRequest],
    dry_run: bool,
    by: AuditContext<'_>,
    now: Now,
) -> Result<Vec<RangeChange>, AssignError> {
    let mut tx = store.begin().await?;
    set_lock_timeout(&mut tx).await?;
    if !dry_run {
        take_turn(&mut tx).await?;
    }
    let registry = Registry {
        ranges: read_ranges(WithTimeout(&mut *tx)).await?,
        jobs: keyed_jobs(&mut tx).await?,
    };
    let changes = plan(&registry, requests).map_err(AssignError::Refused)?;
    let effective: Vec<&RangeChange> = changes.iter().filter(|change| change.is_change()).collect();
    if dry_run || effective.is_empty() {
        return Ok(changes);
    }
    let at = instant(&mut tx, now).await?;
    write(&mut tx, &effective, by, at).await?;
    commit(tx).await?;
    Ok(changes)
}

/// Waits until nobody else changes ranges.
pub(super) async fn take_turn(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("-- take_turn_to_assign\nSELECT pg_advisory_xact_lock($1)", ASSIGN_LOCK_KEY)
        .execute(WithTimeout(connection))
        .await?;
    Ok(())
}

/// Returns the jobs with a key, deleted ones left out.
async fn keyed_jobs(
    connection: &mut PgConnection,
) -> Result<Vec<(String, Option<i64>)>, AssignError> {
    let rows = sqlx::query!(
        "-- keyed_jobs
        SELECT name, lock_key FROM sexton.jobs WHERE lock_key IS NOT NULL AND deleted_at IS NULL"
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(rows.into_iter().map(|row| (row.name, row.lock_key)).collect())
}

async fn write(
    connection: &mut PgConnection,
    changes: &[&RangeChange],
    by: AuditContext<'_>,
    at: DateTime<Utc>,
) -> Result<(), AssignError> {
    let services: Vec<String> = changes.iter().map(|c| c.after.service().to_owned()).collect();
    let first_keys: Vec<i64> = changes.iter().map(|c| c.after.first()).collect();
    let keys: Vec<i32> = changes.iter().map(|c| c.after.keys() as i32).collect();
    let done = sqlx::query!(
        "-- assign_ranges
        INSERT INTO sexton.lock_key_ranges (service, first_key, keys, assigned_by, assigned_at)
        SELECT r.*, $4, $5 FROM unnest($1::text[], $2::bigint[], $3::integer[]) AS r
        ON CONFLICT (service) DO UPDATE SET first_key = excluded.first_key, keys = excluded.keys,
            assigned_by = excluded.assigned_by, assigned_at = excluded.assigned_at",
        &services,
        &first_keys,
        &keys,
        by.actor,
        at
    )
    .execute(WithTimeout(&mut *connection))
    .await?;
    if done.rows_affected() != changes.len() as u64 {
        let value = format!("{} of {} ranges were written", done.rows_affected(), changes.len());
        return Err(StoreError::Inconsistent { place: "lock_key_ranges.service", value }.into());
    }
    let document = |range: &KeyRange| json!(range);
    let before: Vec<Option<Value>> =
        changes.iter().map(|change| change.before.as_ref().map(document)).collect();
    let after: Vec<Value> = changes.iter().map(|change| document(&change.after)).collect();
    sqlx::query!(
        "-- record_assignments
        INSERT INTO sexton.operator_actions (at, actor, action, reason, before, after)
        SELECT $1, $2, 'assign_keys', $3, a.* FROM unnest($4::jsonb[], $5::jsonb[]) AS a",
        at,
        by.actor,
        by.reason,
        &before as &[Option<Value>],
        &after
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
