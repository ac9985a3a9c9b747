//! Checks and pings, for people.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{Store, StoreError};

/// A check with its state.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckStatus {
    /// Its id: the address of its pings. Viewers, who may not report, see zeros.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Name of the key that may ping it by name.
    pub key: Option<String>,
    /// Milliseconds.
    pub every_ms: Option<i64>,
    /// Cron expression.
    pub schedule: Option<String>,
    /// The zone of the schedule.
    pub timezone: String,
    /// Milliseconds.
    pub grace_ms: i64,
    /// Milliseconds.
    pub max_runtime_ms: Option<i64>,
    /// Severity of its incidents.
    pub severity: String,
    /// For routes.
    pub labels: Value,
    /// Whether it is paused.
    pub is_paused: bool,
    /// Violations in a row.
    pub violations: i32,
    /// When a ping, without logs, last arrived.
    pub last_ping_at: Option<DateTime<Utc>>,
    /// What it reported.
    pub last_ping: Option<String>,
    /// When it is judged next; `None`: after a ping.
    pub next_check_at: Option<DateTime<Utc>>,
    /// Cause of the open incident.
    pub cause: Option<String>,
}

/// Which checks are listed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CheckFilter {
    /// The check of this name.
    pub name: Option<String>,
    /// Only those whose name contains this text.
    pub containing: Option<String>,
    /// Only those with an open incident.
    pub open: bool,
    /// Those behind this name.
    pub after: Option<String>,
}

/// Lists checks by name, at most `limit`.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list(
    store: &Store,
    filter: &CheckFilter,
    limit: i64,
) -> Result<Vec<CheckStatus>, StoreError> {
    Ok(sqlx::query_as!(
        CheckStatus,
        r#"-- list_checks
        SELECT c.id, c.name, c.ping_key AS key, c.every_ms, c.schedule, c.timezone, c.grace_ms, c.max_runtime_ms,
               coalesce(c.severity, 'medium') AS "severity!", c.labels, c.is_paused, c.violations,
               p.at AS "last_ping_at?", p.kind AS "last_ping?", nullif(c.next_check_at, 'infinity') AS next_check_at,
               i.cause AS "cause?"
        FROM sexton.checks c
        LEFT JOIN sexton.incidents i ON i.subject_kind = 'check' AND i.subject = c.id::text AND i.state <> 'resolved'
        LEFT JOIN LATERAL (
            SELECT o.at, o.kind FROM sexton.pings o WHERE o.check_id = c.id AND (o.kind = 'log') IS FALSE
            ORDER BY o.id DESC LIMIT 1) p ON true
        WHERE c.deleted_at IS NULL AND ($1::text IS NULL OR c.name = $1)
          AND ($2::text IS NULL OR strpos(c.name, lower($2)) > 0)
          AND (NOT $3 OR i.id IS NOT NULL) AND ($4::text IS NULL OR c.name > $4)
        ORDER BY c.name LIMIT $5"#,
        filter.name,
        filter.containing,
        filter.open,
        filter.after,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// A ping, for people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ListedPing {
    /// When it arrived.
    pub at: DateTime<Utc>,
    /// `start`, `success`, `fail` or `log`.
    pub kind: String,
    /// The exit status that it reports.
    pub exit_code: Option<i32>,
    /// The run that it belongs to.
    pub rid: Option<Uuid>,
    /// What it sent along.
    pub body: Option<String>,
    /// The program that sent it.
    pub agent: Option<String>,
}

/// Lists the newest pings of a check, logs among them, the newest first.
///
/// # Errors
///
/// [`StoreError`].
pub async fn pings(store: &Store, check: Uuid, limit: i64) -> Result<Vec<ListedPing>, StoreError> {
    Ok(sqlx::query_as!(
        ListedPing,
        "-- list_pings
        SELECT at, kind, exit_code, rid, body, agent FROM sexton.pings WHERE check_id = $1 ORDER BY id DESC LIMIT $2",
        check,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}
