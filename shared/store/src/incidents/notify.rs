//! Writes what is to be sent about an incident, in the transaction of what happened to it.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::incident::{NotificationKind, Severity, SubjectKind};
use sexton_model::routing::{Destination, Escalation, Route, destinations};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{MAX_DETAIL_CHARS, MAX_EVENTS, cut};
use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;
use crate::error::parse_column;

/// Reads the routes alone, in their order.
pub(crate) async fn read_routes(connection: &mut PgConnection) -> Result<Vec<Route>, StoreError> {
    let rows = sqlx::query!(
        "-- routes
        SELECT labels, severities, channels, escalate_ms, escalate_to FROM sexton.routes ORDER BY position"
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    let mut routes = Vec::with_capacity(rows.len());
    for row in rows {
        let labels: BTreeMap<String, String> =
            serde_json::from_value(row.labels).map_err(|error| StoreError::Inconsistent {
                place: "routes.labels",
                value: error.to_string(),
            })?;
        let severities = row.severities.iter();
        let severities =
            severities.map(|text| parse_column("routes.severities", text, Severity::parse));
        let escalation = row.escalate_ms.map(|after| Escalation {
            after: Duration::from_millis(after.unsigned_abs()),
            channels: row.escalate_to,
        });
        let severities = severities.collect::<Result<_, _>>()?;
        routes.push(Route { labels, severities, channels: row.channels, escalation });
    }
    Ok(routes)
}

/// What is sent about an incident that has opened.
#[derive(Debug)]
pub(super) struct OpenedIncident<'a> {
    pub(super) id: Uuid,
    pub(super) kind: NotificationKind,
    pub(super) subject_kind: SubjectKind,
    pub(super) subject: &'a str,
    pub(super) labels: &'a BTreeMap<String, String>,
    pub(super) severity: Severity,
    pub(super) detail: &'a str,
    pub(super) silenced_until: Option<DateTime<Utc>>,
}

/// Writes the notifications of incidents that have opened, by the routes: at once, and for later if nobody acknowledges
/// them. A channel learns nothing of its own failure.
pub(super) async fn notify_opened(
    connection: &mut PgConnection,
    routes: &[Route],
    incidents: &[OpenedIncident<'_>],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let all = incidents.iter().flat_map(|incident| about_opened(routes, incident, now));
    insert(connection, all.collect(), now).await
}

fn about_opened<'a>(
    routes: &[Route],
    incident: &OpenedIncident<'a>,
    now: DateTime<Utc>,
) -> Vec<NewNotification<'a>> {
    let is_itself = |channel: &str| {
        incident.subject_kind == SubjectKind::Channel && channel == incident.subject
    };
    let about = |channel, kind, due_at| NewNotification {
        incident: incident.id,
        detail: incident.detail,
        channel,
        kind,
        due_at,
    };
    let mut rows = Vec::new();
    for Destination { channel, after } in destinations(routes, incident.labels, incident.severity) {
        if is_itself(&channel) {
            continue;
        }
        let silence_end = incident.silenced_until.filter(|until| *until > now);
        if after.is_zero() {
            // After a silence there is a reminder.
            let reminder = |end| about(channel.clone(), NotificationKind::Reminder, end);
            rows.extend(silence_end.map(reminder));
            rows.push(about(channel, incident.kind, now));
        } else {
            // A silence delays an escalation, and does not take its place.
            let due_at = now + TimeDelta::from_std(after).unwrap_or_default();
            let due_at = silence_end.map_or(due_at, |end| end.max(due_at));
            rows.push(about(channel, NotificationKind::Escalated, due_at));
        }
    }
    rows
}

/// Writes a notification, with its incident's detail, for each channel that was notified of an incident, or will be at once.
pub(super) async fn notify_followers(
    connection: &mut PgConnection,
    incidents: &[(Uuid, &str)],
    kind: NotificationKind,
    times: (DateTime<Utc>, DateTime<Utc>),
) -> Result<(), StoreError> {
    if incidents.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = incidents.iter().map(|(id, _)| *id).collect();
    let followers = sqlx::query!(
        r#"-- channels_of_incidents
        SELECT DISTINCT o.place AS "place!", n.channel
        FROM unnest($1::uuid[]) WITH ORDINALITY AS o (id, place) JOIN sexton.notifications n ON n.incident_id = o.id
        WHERE n.kind IN ('opened', 'reopened') OR n.kind = 'escalated' AND n.state = 'sent'
        ORDER BY 1, 2"#,
        &ids
    )
    .fetch_all(WithTimeout(&mut *connection))
    .await?;
    let (now, due_at) = times;
    let rows = followers.into_iter().map(|row| {
        let (incident, detail) = incidents[row.place as usize - 1];
        NewNotification { incident, detail, channel: row.channel, kind, due_at }
    });
    insert(connection, rows.collect(), now).await
}

/// Drops what waits for later: reminders and escalations of incidents that are over.
pub(super) async fn drop_later(
    connection: &mut PgConnection,
    incidents: &[Uuid],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    if incidents.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "-- drop_later_notifications
        UPDATE sexton.notifications n SET state = 'dropped', finished_at = $2, last_error = 'the incident is over'
        FROM (SELECT id FROM sexton.notifications
              WHERE incident_id = ANY ($1) AND state = 'pending' AND kind IN ('reminder', 'escalated') AND attempts = 0
              ORDER BY id FOR NO KEY UPDATE) l WHERE n.id = l.id",
        incidents,
        now
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

/// Delays the escalations of an incident that is silenced, and drops its reminders: the end of the silence brings one.
pub(super) async fn delay_escalations(
    connection: &mut PgConnection,
    incident: Uuid,
    until: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- delay_escalations
        UPDATE sexton.notifications SET
            state = CASE kind WHEN 'reminder' THEN 'dropped' ELSE state END,
            finished_at = CASE kind WHEN 'reminder' THEN $3::timestamptz END,
            last_error = CASE kind WHEN 'reminder' THEN 'the incident is silenced' ELSE last_error END,
            due_at = CASE kind WHEN 'reminder' THEN due_at ELSE greatest(due_at, $2::timestamptz) END
        WHERE incident_id = $1 AND state = 'pending' AND kind IN ('reminder', 'escalated') AND attempts = 0",
        incident,
        until,
        now
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

/// A notification to be written.
struct NewNotification<'a> {
    incident: Uuid,
    detail: &'a str,
    channel: String,
    kind: NotificationKind,
    due_at: DateTime<Utc>,
}

/// Writes notifications. Those to a channel that is not there are left out, since nobody would send them.
async fn insert(
    connection: &mut PgConnection,
    rows: Vec<NewNotification<'_>>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = rows.iter().map(|_| Uuid::now_v7()).collect();
    let incidents: Vec<Uuid> = rows.iter().map(|row| row.incident).collect();
    let kinds: Vec<String> = rows.iter().map(|row| row.kind.as_str().to_owned()).collect();
    let details: Vec<String> = rows.iter().map(|row| cut(row.detail, MAX_DETAIL_CHARS)).collect();
    let due: Vec<DateTime<Utc>> = rows.iter().map(|row| row.due_at).collect();
    let channels: Vec<String> = rows.into_iter().map(|row| row.channel).collect();
    sqlx::query!(
        "-- insert_notifications
        INSERT INTO sexton.notifications (id, incident_id, channel, kind, detail, created_at, due_at)
        SELECT r.id, r.incident_id, c.name, r.kind, r.detail, $1, r.due_at
        FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])
            AS r (id, incident_id, channel, kind, detail, due_at)
        JOIN sexton.channels c ON c.name = r.channel",
        now,
        &ids,
        &incidents,
        &channels,
        &kinds,
        &details,
        &due
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

/// An entry of an incident's timeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<'a> {
    pub(super) incident: Uuid,
    pub(super) kind: &'a str,
    pub(super) detail: Option<&'a str>,
}

/// Adds entries to the timelines of different incidents, within the bounds of [`MAX_EVENTS`]. Without an actor Sexton did it.
pub(super) async fn record_events(
    connection: &mut PgConnection,
    events: &[Event<'_>],
    actor: Option<&str>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let incidents: Vec<Uuid> = events.iter().map(|event| event.incident).collect();
    let kinds: Vec<String> = events.iter().map(|event| event.kind.to_owned()).collect();
    let details = events.iter().map(|event| event.detail);
    let details: Vec<Option<String>> =
        details.map(|detail| detail.map(|text| cut(text, MAX_DETAIL_CHARS))).collect();
    sqlx::query!(
        "-- record_incident_events
        INSERT INTO sexton.incident_events (incident_id, at, kind, actor, detail)
        SELECT g.incident_id, $4, g.kind, $5, g.detail
        FROM unnest($1::uuid[], $2::text[], $3::text[]) WITH ORDINALITY AS g (incident_id, kind, detail, no)
        WHERE $5::text IS NOT NULL
           OR (SELECT count(*) FROM sexton.incident_events e WHERE e.incident_id = g.incident_id)
               < CASE g.kind WHEN 'occurred' THEN $6::bigint ELSE 2 * $6::bigint END
        ORDER BY g.no",
        &incidents,
        &kinds,
        &details as &[Option<String>],
        now,
        actor,
        MAX_EVENTS
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
