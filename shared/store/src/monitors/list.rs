//! Monitors of jobs, for people.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{Store, StoreError};

/// Which monitors are listed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MonitorFilter {
    /// Only those whose job's name contains this text.
    pub containing: Option<String>,
    /// Only those with an open incident.
    pub open: bool,
    /// Only those of jobs that limit a time.
    pub limited: bool,
    /// Those behind this job's name.
    pub after: Option<String>,
}

/// A monitor with its expectations.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MonitorStatus {
    /// The job's name.
    pub job: String,
    /// `active` or `paused`.
    pub status: String,
    /// Milliseconds.
    pub start_within_ms: Option<i64>,
    /// Milliseconds.
    pub expect_within_ms: Option<i64>,
    /// Milliseconds.
    pub max_runtime_ms: Option<i64>,
    /// Violations in a row that open an incident.
    pub alert_after: i32,
    /// Successes that resolve it.
    pub recover_after: i32,
    /// Severity of its incidents.
    pub severity: String,
    /// Violations in a row.
    pub violations: i32,
    /// When the last of these happened.
    pub violated_at: Option<DateTime<Utc>>,
    /// When it was last checked.
    pub checked_at: DateTime<Utc>,
    /// When it is checked next; `None`: after an event.
    pub next_check_at: Option<DateTime<Utc>>,
    /// Cause of the open incident.
    pub cause: Option<String>,
}

/// Lists monitors by the names of their jobs, at most `limit`.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list(
    store: &Store,
    filter: &MonitorFilter,
    limit: i64,
) -> Result<Vec<MonitorStatus>, StoreError> {
    Ok(sqlx::query_as!(
        MonitorStatus,
        r#"-- list_monitors
        SELECT j.name AS job, j.status, j.start_within_ms, j.expect_within_ms, j.max_runtime_ms,
               coalesce(j.alert_after, 1) AS "alert_after!", coalesce(j.recover_after, 1) AS "recover_after!",
               coalesce(j.severity, 'medium') AS "severity!", m.violations, m.violated_at, m.checked_at,
               nullif(m.next_check_at, 'infinity') AS next_check_at, i.cause AS "cause?"
        FROM sexton.jobs j JOIN sexton.job_monitors m ON m.job_id = j.id
        LEFT JOIN sexton.incidents i ON i.subject_kind = 'job' AND i.subject = j.id::text AND i.state <> 'resolved'
        WHERE j.deleted_at IS NULL AND ($1::text IS NULL OR strpos(lower(j.name), lower($1)) > 0)
          AND (NOT $2 OR i.id IS NOT NULL)
          AND (NOT $3 OR coalesce(j.start_within_ms, j.expect_within_ms, j.max_runtime_ms) IS NOT NULL)
          AND ($4::text IS NULL OR j.name > $4)
        ORDER BY j.name LIMIT $5"#,
        filter.containing,
        filter.open,
        filter.limited,
        filter.after,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}
