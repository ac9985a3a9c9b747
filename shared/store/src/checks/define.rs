//! Checks as people define them: applied, paused, deleted. Each call is one transaction, with its record in the audit.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use sexton_model::check::{CheckSpec, REMOVED_AFTER};
use sexton_model::duration::to_millis;
use sexton_model::incident::Severity;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{CheckRow, columns, document};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::operator::{AuditContext, is_lock_timeout, record_jobless_action, set_lock_timeout};
use crate::{Now, Store, StoreError};

/// What an apply changes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChecksChange {
    /// Names of new checks.
    pub added: Vec<String>,
    /// Names of checks with other expectations.
    pub changed: Vec<String>,
    /// Number of checks that stay as they are.
    pub unchanged: usize,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ChecksError {
    /// Somebody else kept a lock for 5 s. Try again.
    #[error("somebody else changes checks right now; try again")]
    Locked,
    /// A check's key does not exist.
    #[error(
        "there is no ping key {0:?}; create it with `sexton checks create-key {0}`, or write the name of another"
    )]
    UnknownKey(String),
    /// There is no such check.
    #[error("there is no check {0:?}")]
    Missing(String),
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for ChecksError {
    fn from(error: sqlx::Error) -> Self {
        if is_lock_timeout(&error) { Self::Locked } else { Self::Store(error.into()) }
    }
}

/// Adds the checks, and changes those that there are already. Others stay. With `dry_run` nothing is written.
///
/// # Errors
///
/// [`ChecksError`]; nothing was written.
pub async fn apply(
    store: &Store,
    specs: &[CheckSpec],
    dry_run: bool,
    by: AuditContext<'_>,
    now: Now,
) -> Result<ChecksChange, ChecksError> {
    let mut tx = store.begin().await?;
    set_lock_timeout(&mut tx).await?;
    if !dry_run {
        // One after the other: the table is compared and then changed. Pings and judgements go on.
        sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended('sexton checks apply', 0))")
            .execute(WithTimeout(&mut *tx))
            .await?;
    }
    let before = read(&mut tx, specs).await?;
    let keys: Vec<String> = specs.iter().filter_map(|spec| spec.key.clone()).collect();
    let unknown = sqlx::query_scalar!(
        r#"-- unknown_ping_keys
        SELECT g.name AS "name!" FROM unnest($1::text[]) AS g (name)
        WHERE NOT EXISTS (SELECT FROM sexton.ping_keys k WHERE k.name = g.name) LIMIT 1"#,
        &keys
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await?;
    if let Some(key) = unknown {
        return Err(ChecksError::UnknownKey(key));
    }
    let mut change = ChecksChange::default();
    let at = instant(&mut tx, now).await?;
    for spec in specs {
        let old = before.iter().find(|old| old.name == spec.name);
        match old {
            Some(old) if old == spec => {
                change.unchanged += 1;
                continue;
            }
            Some(_) => change.changed.push(spec.name.clone()),
            None => change.added.push(spec.name.clone()),
        }
        if !dry_run {
            write(&mut tx, spec, at).await?;
            let change = (old.map(document), Some(document(spec)));
            record_jobless_action(&mut tx, "apply_check", change, by, at).await?;
        }
    }
    if !dry_run {
        commit(tx).await?;
    }
    Ok(change)
}

async fn read(
    connection: &mut PgConnection,
    specs: &[CheckSpec],
) -> Result<Vec<CheckSpec>, ChecksError> {
    let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    let rows = sqlx::query_as!(
        CheckRow,
        "-- defined_checks
        SELECT id, name, ping_key, every_ms, schedule, timezone, grace_ms, early_by_ms, max_runtime_ms, alert_after,
               recover_after, remind_every_ms, severity, labels, is_paused, changed_at, deleted_at
        FROM sexton.checks WHERE name = ANY ($1) AND deleted_at IS NULL",
        &names
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(rows.iter().map(CheckRow::spec).collect::<Result<_, _>>()?)
}

async fn write(
    connection: &mut PgConnection,
    spec: &CheckSpec,
    at: DateTime<Utc>,
) -> Result<(), ChecksError> {
    let (every_ms, schedule, timezone) = columns(&spec.cadence);
    sqlx::query!(
        "-- write_check
        INSERT INTO sexton.checks AS c (id, name, ping_key, every_ms, schedule, timezone, grace_ms, early_by_ms, max_runtime_ms,
            alert_after, recover_after, remind_every_ms, severity, labels, created_at, changed_at, next_check_at, checked_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15, $15, $15)
        ON CONFLICT (name) WHERE deleted_at IS NULL DO UPDATE SET ping_key = excluded.ping_key, every_ms = excluded.every_ms,
            schedule = excluded.schedule, timezone = excluded.timezone, grace_ms = excluded.grace_ms,
            early_by_ms = excluded.early_by_ms, max_runtime_ms = excluded.max_runtime_ms, alert_after = excluded.alert_after,
            recover_after = excluded.recover_after, remind_every_ms = excluded.remind_every_ms, severity = excluded.severity,
            labels = excluded.labels, next_check_at = excluded.next_check_at,
            changed_at = CASE WHEN (c.every_ms, c.schedule, c.timezone) IS DISTINCT FROM
                (excluded.every_ms, excluded.schedule, excluded.timezone) THEN excluded.changed_at ELSE c.changed_at END",
        Uuid::new_v4(),
        spec.name,
        spec.key,
        every_ms,
        schedule,
        timezone,
        to_millis(spec.grace),
        spec.early_by.map(to_millis),
        spec.max_runtime.map(to_millis),
        spec.alert_after.map(|number| number as i32),
        spec.recover_after.map(|number| number as i32),
        spec.remind_every.map(to_millis),
        spec.severity.map(Severity::as_str),
        json!(spec.labels),
        at
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

/// What a person does to one check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckAction {
    /// Nothing is expected until it is resumed.
    Pause,
    /// What is expected counts from now on.
    Resume,
    /// It goes, with its pings.
    Delete,
}

/// Pauses, resumes or deletes a check. Returns `false` if it is so already.
///
/// # Errors
///
/// [`ChecksError`]; nothing was written.
pub async fn act(
    store: &Store,
    name: &str,
    action: CheckAction,
    by: AuditContext<'_>,
    now: Now,
) -> Result<bool, ChecksError> {
    let mut tx = store.begin().await?;
    set_lock_timeout(&mut tx).await?;
    let at = instant(&mut tx, now).await?;
    let (pauses, deletes) = (action == CheckAction::Pause, action == CheckAction::Delete);
    let row = sqlx::query!(
        r#"-- act_on_check
        WITH before AS (
            SELECT id, is_paused FROM sexton.checks WHERE name = $1 AND deleted_at IS NULL FOR NO KEY UPDATE)
        UPDATE sexton.checks c SET is_paused = CASE WHEN $3 THEN c.is_paused ELSE $2 END, next_check_at = $4,
            changed_at = CASE WHEN b.is_paused AND NOT $2 AND NOT $3 THEN $4 ELSE c.changed_at END,
            deleted_at = CASE WHEN $3 THEN $4 END,
            trim_at = CASE WHEN $3 THEN $4 + $5 * interval '1 second' ELSE c.trim_at END
        FROM before b WHERE c.id = b.id RETURNING b.is_paused AS "was_paused!""#,
        name,
        pauses,
        deletes,
        at,
        REMOVED_AFTER.as_secs_f64()
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await?;
    let row = row.ok_or_else(|| ChecksError::Missing(name.to_owned()))?;
    if !deletes && row.was_paused == pauses {
        return Ok(false);
    }
    let action = match action {
        CheckAction::Pause => "pause_check",
        CheckAction::Resume => "resume_check",
        CheckAction::Delete => "delete_check",
    };
    record_jobless_action(&mut tx, action, (Some(json!({"name": name})), None), by, at).await?;
    commit(tx).await?;
    Ok(true)
}
