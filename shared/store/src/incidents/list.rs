//! Reads incidents.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sexton_model::incident::{Severity, SubjectKind};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::connection::client_timeout::WithTimeout;
use crate::connection::instant::instant;
use crate::{Now, Store, StoreError};

/// A row of `incidents`; the fields are named after the columns.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Incident {
    pub id: Uuid,
    pub subject_kind: String,
    pub subject: String,
    pub name: String,
    pub cause: String,
    pub severity: String,
    pub labels: Value,
    pub detail: String,
    pub job_id: Option<Uuid>,
    pub execution_id: Option<Uuid>,
    pub state: String,
    pub occurrences: i32,
    pub opened_at: DateTime<Utc>,
    pub changed_at: DateTime<Utc>,
    pub acknowledged_at: Option<DateTime<Utc>>,
    pub acknowledged_by: Option<String>,
    pub silenced_until: Option<DateTime<Utc>>,
    pub silenced_by: Option<String>,
    pub silence_reason: Option<String>,
    pub resolved_at: Option<DateTime<Utc>>,
    pub resolved_by: Option<String>,
}

/// An entry of a timeline; the fields are named after the columns.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IncidentEvent {
    pub at: DateTime<Utc>,
    pub kind: String,
    pub actor: Option<String>,
    pub detail: Option<String>,
}

/// Which incidents are listed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IncidentFilter {
    /// Also those that are resolved.
    pub with_resolved: bool,
    /// Those of this severity; `None`: of any.
    pub severity: Option<Severity>,
    /// Those about subjects of this kind; `None`: of any.
    pub subject_kind: Option<SubjectKind>,
    /// Those about subjects whose name contains this text; `None`: any.
    pub containing: Option<String>,
    /// Those older than the incident with this id; `None`: the newest.
    pub before: Option<Uuid>,
}

/// Lists incidents, newest first, at most `limit`.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list(
    store: &Store,
    filter: &IncidentFilter,
    limit: i64,
) -> Result<Vec<Incident>, StoreError> {
    Ok(sqlx::query_as!(
        Incident,
        "-- list_incidents
        SELECT id, subject_kind, subject, name, cause, severity, labels, detail, job_id, execution_id, state, occurrences,
               opened_at, changed_at, acknowledged_at, acknowledged_by, silenced_until, silenced_by, silence_reason,
               resolved_at, resolved_by
        FROM sexton.incidents i
        WHERE ($1 OR state <> 'resolved') AND ($2::text IS NULL OR severity = $2)
          AND ($3::text IS NULL OR subject_kind = $3) AND ($4::text IS NULL OR strpos(lower(name), lower($4)) > 0)
          AND ($5::uuid IS NULL OR (opened_at, id) < (SELECT b.opened_at, b.id FROM sexton.incidents b WHERE b.id = $5))
        ORDER BY opened_at DESC, id DESC LIMIT $6",
        filter.with_resolved,
        filter.severity.map(Severity::as_str),
        filter.subject_kind.map(SubjectKind::as_str),
        filter.containing,
        filter.before,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Reads one incident; `None`: there is no such one.
///
/// # Errors
///
/// [`StoreError`].
pub async fn read(store: &Store, id: Uuid) -> Result<Option<Incident>, StoreError> {
    read_with(store.with_timeout(), id).await
}

async fn read_with<'e>(
    executor: impl PgExecutor<'e>,
    id: Uuid,
) -> Result<Option<Incident>, StoreError> {
    Ok(sqlx::query_as!(
        Incident,
        "-- read_incident
        SELECT id, subject_kind, subject, name, cause, severity, labels, detail, job_id, execution_id, state, occurrences,
               opened_at, changed_at, acknowledged_at, acknowledged_by, silenced_until, silenced_by, silence_reason,
               resolved_at, resolved_by
        FROM sexton.incidents WHERE id = $1",
        id
    )
    .fetch_optional(executor)
    .await?)
}

/// Finds incidents whose id begins with these digits, at least `min_digits`, and open ones whose subject has this name, or is a group
/// of failures whose fingerprint begins so. At most five.
///
/// # Errors
///
/// [`StoreError`].
pub async fn find(
    store: &Store,
    reference: &str,
    min_digits: i32,
) -> Result<Vec<Incident>, StoreError> {
    Ok(sqlx::query_as!(
        Incident,
        "-- find_incidents
        SELECT id, subject_kind, subject, name, cause, severity, labels, detail, job_id, execution_id, state, occurrences,
               opened_at, changed_at, acknowledged_at, acknowledged_by, silenced_until, silenced_by, silence_reason,
               resolved_at, resolved_by
        FROM sexton.incidents
        WHERE state <> 'resolved' AND name = $1
           OR length($1) >= $2 AND starts_with(id::text, lower($1))
           OR length($1) >= $2 AND subject_kind = 'group' AND state <> 'resolved' AND starts_with(subject, lower($1))
        ORDER BY opened_at DESC LIMIT 5",
        reference,
        min_digits
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Locks one incident, and reads it with the transaction's instant. The lock lets others refer to the incident: a sender adds to its
/// timeline while it holds notifications that the caller wants.
pub(super) async fn read_for_update(
    connection: &mut PgConnection,
    id: Uuid,
    now: Now,
) -> Result<Option<(Incident, DateTime<Utc>)>, StoreError> {
    sqlx::query!(
        "-- lock_incident\nSELECT FROM sexton.incidents WHERE id = $1 FOR NO KEY UPDATE",
        id
    )
    .execute(WithTimeout(&mut *connection))
    .await?;
    let Some(incident) = read_with(WithTimeout(&mut *connection), id).await? else {
        return Ok(None);
    };
    Ok(Some((incident, instant(connection, now).await?)))
}

/// Reads an incident's timeline, oldest first: all of it.
///
/// # Errors
///
/// [`StoreError`].
pub async fn read_timeline(store: &Store, id: Uuid) -> Result<Vec<IncidentEvent>, StoreError> {
    Ok(sqlx::query_as!(
        IncidentEvent,
        "-- read_incident_timeline
        SELECT at, kind, actor, detail FROM sexton.incident_events WHERE incident_id = $1 ORDER BY id LIMIT 1000",
        id
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Counts the open incidents, acknowledged ones included, of each severity.
///
/// # Errors
///
/// [`StoreError`].
pub async fn count_open(store: &Store) -> Result<Vec<(Severity, i64)>, StoreError> {
    let rows = sqlx::query!(
        r#"-- count_open_incidents
        SELECT severity, count(*) AS "count!" FROM sexton.incidents WHERE state <> 'resolved' GROUP BY severity"#
    )
    .fetch_all(store.with_timeout())
    .await?;
    let count = |severity: Severity| {
        let row = rows.iter().find(|row| row.severity == severity.as_str());
        (severity, row.map_or(0, |row| row.count))
    };
    Ok(Severity::ALL.map(count).to_vec())
}
