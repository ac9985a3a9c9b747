//! Reads the notifications of a channel that are due, with their incidents.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::incident::{IncidentState, NotificationKind, Severity, SubjectKind};
use sexton_model::notification::{Incident, Message, Standing};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;
use crate::error::parse_column;

/// A notification that is due.
#[derive(Clone, Debug)]
pub(super) struct DueNotification {
    pub(super) message: Message,
    pub(super) attempts: i32,
    pub(super) digest: Option<Uuid>,
    is_delayed: bool,
    is_silenced: bool,
}

impl DueNotification {
    /// Returns what decides whether it is sent; `is_joined`: an earlier one of its incident is sent with it.
    pub(super) fn standing(&self, is_joined: bool) -> Standing {
        Standing {
            kind: self.message.kind,
            was_tried: self.attempts > 0,
            is_delayed: self.is_delayed,
            incident: self.message.incident.as_ref().map(|incident| incident.state),
            is_silenced: self.is_silenced,
            knows_incident: is_joined || self.message.thread.is_some(),
        }
    }
}

struct Row {
    id: Uuid,
    kind: String,
    detail: String,
    created_at: DateTime<Utc>,
    attempts: i32,
    digest: Option<Uuid>,
    delayed: bool,
    silenced: bool,
    thread: Option<Uuid>,
    incident_id: Option<Uuid>,
    subject_kind: Option<String>,
    name: Option<String>,
    cause: Option<String>,
    severity: Option<String>,
    labels: Option<Value>,
    incident_detail: Option<String>,
    job_id: Option<Uuid>,
    execution_id: Option<Uuid>,
    state: Option<String>,
    occurrences: Option<i32>,
    opened_at: Option<DateTime<Utc>>,
    acknowledged_by: Option<String>,
    resolved_at: Option<DateTime<Utc>>,
}

/// Reads the notifications of a channel that are due, in the order in which they were written, tests first. One whose incident has an
/// earlier one that was tried, and is not due yet, waits for that. With `digest` only those of that digest.
pub(super) async fn read(
    connection: &mut PgConnection,
    channel: &str,
    digest: Option<Uuid>,
    limit: usize,
    now: DateTime<Utc>,
) -> Result<Vec<DueNotification>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        r#"-- due_notifications
        SELECT n.id, n.kind, n.detail, n.created_at, n.attempts, n.digest,
               n.due_at > n.created_at + interval '1 second' AS "delayed!",
               coalesce(i.silenced_until > $3, false) AS "silenced!",
               (SELECT m.id FROM sexton.notifications m
                WHERE m.incident_id = n.incident_id AND m.channel = n.channel AND m.attempts > 0
                  AND m.kind IN ('opened', 'reopened', 'reminder', 'escalated')
                  AND (m.created_at, m.id) < (n.created_at, n.id)
                ORDER BY m.created_at, m.id LIMIT 1) AS thread,
               i.id AS "incident_id?", i.subject_kind AS "subject_kind?", i.name AS "name?", i.cause AS "cause?",
               i.severity AS "severity?", i.labels AS "labels?", i.detail AS "incident_detail?", i.job_id,
               i.execution_id, i.state AS "state?", i.occurrences AS "occurrences?", i.opened_at AS "opened_at?",
               i.acknowledged_by, i.resolved_at
        FROM sexton.notifications n LEFT JOIN sexton.incidents i ON i.id = n.incident_id
        WHERE n.channel = $1 AND n.state = 'pending' AND n.due_at <= $3 AND ($2::uuid IS NULL OR n.digest = $2)
          AND NOT EXISTS (
              SELECT FROM sexton.notifications e
              WHERE e.incident_id = n.incident_id AND e.channel = n.channel AND e.state = 'pending' AND e.attempts > 0
                AND e.due_at > $3 AND (e.created_at, e.id) < (n.created_at, n.id))
        ORDER BY (n.kind = 'test') DESC, n.created_at, n.id LIMIT $4"#,
        channel,
        digest,
        now,
        limit as i64
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    rows.iter().map(due).collect()
}

fn due(row: &Row) -> Result<DueNotification, StoreError> {
    let message = Message {
        id: row.id,
        kind: parse_column("notifications.kind", &row.kind, NotificationKind::parse)?,
        detail: row.detail.clone(),
        created_at: row.created_at,
        thread: row.thread,
        incident: incident(row)?,
    };
    Ok(DueNotification {
        message,
        attempts: row.attempts,
        digest: row.digest,
        is_delayed: row.delayed,
        is_silenced: row.silenced,
    })
}

fn incident(row: &Row) -> Result<Option<Incident>, StoreError> {
    let Some(id) = row.incident_id else { return Ok(None) };
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let labels = row.labels.as_ref().and_then(Value::as_object);
    let labels: BTreeMap<String, String> = labels
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    let column = text(&row.subject_kind);
    let subject_kind = parse_column("incidents.subject_kind", &column, SubjectKind::parse)?;
    let severity = parse_column("incidents.severity", &text(&row.severity), Severity::parse)?;
    let state = parse_column("incidents.state", &text(&row.state), IncidentState::parse)?;
    Ok(Some(Incident {
        id,
        subject_kind,
        name: text(&row.name),
        cause: text(&row.cause),
        severity,
        labels,
        detail: text(&row.incident_detail),
        job_id: row.job_id,
        execution_id: row.execution_id,
        state,
        occurrences: row.occurrences.unwrap_or(1),
        opened_at: row.opened_at.unwrap_or(row.created_at),
        acknowledged_by: row.acknowledged_by.clone(),
        resolved_at: row.resolved_at,
    }))
}
