//! What monitors report: an incident opens, or occurs again.
//!
//! A thousand jobs may miss their deadlines at one instant, so each step is one statement for all of them. Incidents are locked in the order
//! of their ids, so that two transactions do not wait for each other.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use sexton_model::incident::{NotificationKind, Severity, SubjectKind};
use sexton_model::routing::Route;
use sqlx::PgConnection;
use uuid::Uuid;

use super::notify::{Event, OpenedIncident, notify_opened, read_routes, record_events};
use super::{MAX_DETAIL_CHARS, RESOLVER, cut};
use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;

/// An incident that ended by itself this short a time ago opens again, rather than a new one of its subject.
const REOPENS_WITHIN: TimeDelta = TimeDelta::minutes(10);
/// One that opened longer ago does not open again, so that the incidents of a job that fails now and then end, and are removed
/// some day.
const MAX_AGE_OF_REOPENED: TimeDelta = TimeDelta::days(1);
/// The longest name of a subject, in characters.
const MAX_NAME_CHARS: usize = 250;

/// What a monitor has found.
#[derive(Clone, PartialEq, Debug)]
pub struct Occurrence {
    /// The kind of subject.
    pub subject_kind: SubjectKind,
    /// The subject's id.
    pub subject: String,
    /// The subject's name for people.
    pub name: String,
    /// The cause.
    pub cause: String,
    /// The severity.
    pub severity: Severity,
    /// Labels, for routes.
    pub labels: BTreeMap<String, String>,
    /// What happened, in words.
    pub detail: String,
    /// The job that it is about.
    pub job: Option<Uuid>,
    /// The execution that it is about.
    pub execution: Option<Uuid>,
    /// How often it happened.
    pub occurrences: u32,
    /// Milliseconds between reminders.
    pub remind_every_ms: Option<i64>,
}

/// An incident that has opened, and the end of its silence.
type Opened = (Uuid, Option<DateTime<Utc>>);

/// An occurrence, and its detail as it is written.
struct Found<'a> {
    occurrence: &'a Occurrence,
    detail: String,
}

/// Reports occurrences: each adds to its subject's open incident, opens the one again that ended a few minutes ago, or opens a
/// new one.
///
/// # Errors
///
/// [`StoreError`]; the caller rolls back.
pub async fn report(
    connection: &mut PgConnection,
    occurrences: &[Occurrence],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    if occurrences.is_empty() {
        return Ok(());
    }
    let routes = read_routes(connection).await?;
    let mut left: Vec<&Occurrence> = occurrences.iter().collect();
    while !left.is_empty() {
        // A second occurrence of a subject adds to the incident of the first.
        let mut subjects = HashSet::new();
        let (mut first, mut later) = (Vec::new(), Vec::new());
        for occurrence in left {
            if subjects.insert((occurrence.subject_kind, &occurrence.subject)) {
                let detail = cut(&occurrence.detail, MAX_DETAIL_CHARS);
                first.push(Found { occurrence, detail });
            } else {
                later.push(occurrence);
            }
        }
        report_once(connection, &routes, &first, now).await?;
        left = later;
    }
    Ok(())
}

/// Reports occurrences of different subjects.
async fn report_once(
    connection: &mut PgConnection,
    routes: &[Route],
    found: &[Found<'_>],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let all: Vec<usize> = (0..found.len()).collect();
    let added = add_to_open(connection, found, now).await?;
    let left = without(&all, &added);
    let reopened = reopen(connection, found, &left, now).await?;
    let left = without(&left, &reopened);
    let opened = open(connection, found, &left, now).await?;

    let mut events = Vec::with_capacity(found.len());
    let mut incidents = Vec::new();
    for (place, Found { occurrence, detail }) in found.iter().enumerate() {
        if let Some(incident) = added.get(&place) {
            events.push(Event { incident: *incident, kind: "occurred", detail: Some(detail) });
            continue;
        }
        let again = reopened.get(&place).map(|one| (one, NotificationKind::Reopened));
        let new = || opened.get(&place).map(|one| (one, NotificationKind::Opened));
        let Some((&(id, silenced_until), kind)) = again.or_else(new) else { continue };
        events.push(Event { incident: id, kind: kind.as_str(), detail: Some(detail) });
        incidents.push(OpenedIncident {
            id,
            kind,
            subject_kind: occurrence.subject_kind,
            subject: &occurrence.subject,
            labels: &occurrence.labels,
            severity: occurrence.severity,
            detail,
            silenced_until,
        });
    }
    record_events(connection, &events, None, now).await?;
    notify_opened(connection, routes, &incidents, now).await
}

fn without<T>(places: &[usize], done: &HashMap<usize, T>) -> Vec<usize> {
    places.iter().copied().filter(|place| !done.contains_key(place)).collect()
}

/// Adds to the open incidents of the subjects. Returns them by the places of the occurrences.
async fn add_to_open(
    connection: &mut PgConnection,
    found: &[Found<'_>],
    now: DateTime<Utc>,
) -> Result<HashMap<usize, Uuid>, StoreError> {
    let places: Vec<usize> = (0..found.len()).collect();
    let given = Given::of(found, &places);
    let rows = sqlx::query!(
        r#"-- add_to_incidents
        WITH given AS MATERIALIZED (
            SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::uuid[], $7::bigint[])
                AS g (subject_kind, subject, occurrences, cause, detail, execution_id, place)),
        locked AS MATERIALIZED (
            SELECT i.id, g.place FROM given g JOIN sexton.incidents i
                ON i.subject_kind = g.subject_kind AND i.subject = g.subject AND i.state <> 'resolved'
            ORDER BY i.id FOR NO KEY UPDATE OF i)
        UPDATE sexton.incidents i SET occurrences = least(i.occurrences::bigint + g.occurrences, 2000000000)::int, cause = g.cause,
            detail = g.detail, execution_id = coalesce(g.execution_id, i.execution_id), changed_at = $8
        FROM locked l JOIN given g ON g.place = l.place WHERE i.id = l.id RETURNING i.id, l.place AS "place!""#,
        &given.kinds,
        &given.subjects,
        &given.occurrences,
        &given.causes,
        &given.details,
        &given.executions as &[Option<Uuid>],
        &given.places,
        now
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(rows.into_iter().map(|row| (row.place as usize, row.id)).collect())
}

/// Opens the last incidents of these subjects again whose causes were gone for a few minutes only. One that a person resolved stays
/// resolved.
async fn reopen(
    connection: &mut PgConnection,
    found: &[Found<'_>],
    places: &[usize],
    now: DateTime<Utc>,
) -> Result<HashMap<usize, Opened>, StoreError> {
    if places.is_empty() {
        return Ok(HashMap::new());
    }
    let given = Given::of(found, places);
    let rows = sqlx::query!(
        r#"-- reopen_incidents
        WITH given AS MATERIALIZED (
            SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::uuid[], $7::bigint[])
                AS g (subject_kind, subject, occurrences, cause, detail, execution_id, place)),
        last AS MATERIALIZED (
            SELECT b.id, g.place FROM given g CROSS JOIN LATERAL (
                SELECT i.id FROM sexton.incidents i WHERE i.subject_kind = g.subject_kind AND i.subject = g.subject
                ORDER BY i.opened_at DESC LIMIT 1) b),
        locked AS MATERIALIZED (
            SELECT i.id, l.place FROM last l JOIN sexton.incidents i ON i.id = l.id
            WHERE i.state = 'resolved' AND i.resolved_by = $9 AND i.resolved_at > $10 AND i.opened_at > $11
            ORDER BY i.id FOR NO KEY UPDATE OF i)
        UPDATE sexton.incidents i SET state = 'open', resolved_at = NULL, resolved_by = NULL, acknowledged_at = NULL,
            acknowledged_by = NULL, occurrences = least(i.occurrences::bigint + g.occurrences, 2000000000)::int, cause = g.cause,
            detail = g.detail, execution_id = coalesce(g.execution_id, i.execution_id), changed_at = $8
        FROM locked l JOIN given g ON g.place = l.place WHERE i.id = l.id
        RETURNING i.id, i.silenced_until, l.place AS "place!""#,
        &given.kinds,
        &given.subjects,
        &given.occurrences,
        &given.causes,
        &given.details,
        &given.executions as &[Option<Uuid>],
        &given.places,
        now,
        RESOLVER,
        now - REOPENS_WITHIN,
        now - MAX_AGE_OF_REOPENED
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(rows.into_iter().map(|row| (row.place as usize, (row.id, row.silenced_until))).collect())
}

/// Opens new incidents. A silence of a subject's last one goes on.
async fn open(
    connection: &mut PgConnection,
    found: &[Found<'_>],
    places: &[usize],
    now: DateTime<Utc>,
) -> Result<HashMap<usize, Opened>, StoreError> {
    if places.is_empty() {
        return Ok(HashMap::new());
    }
    let given = Given::of(found, places);
    let occurrences = || places.iter().map(|place| found[*place].occurrence);
    let ids: Vec<Uuid> = occurrences().map(|_| Uuid::now_v7()).collect();
    let names: Vec<String> = occurrences().map(|one| cut(&one.name, MAX_NAME_CHARS)).collect();
    let severities: Vec<String> =
        occurrences().map(|one| one.severity.as_str().to_owned()).collect();
    let labels: Vec<Value> = occurrences().map(|one| json!(one.labels)).collect();
    let jobs: Vec<Option<Uuid>> = occurrences().map(|one| one.job).collect();
    let reminders: Vec<Option<i64>> = occurrences().map(|one| one.remind_every_ms).collect();
    let rows = sqlx::query!(
        "-- open_incidents
        INSERT INTO sexton.incidents (id, subject_kind, subject, name, cause, severity, labels, detail, job_id, execution_id,
            state, occurrences, remind_every_ms, opened_at, changed_at, silenced_until, silenced_by, silence_reason)
        SELECT g.id, g.subject_kind, g.subject, g.name, g.cause, g.severity, g.labels, g.detail, g.job_id, g.execution_id, 'open',
               least(greatest(g.occurrences, 1), 2000000000)::int, g.remind_every_ms, $13, $13, b.silenced_until, b.silenced_by,
               b.silence_reason
        FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::jsonb[], $8::text[], $9::uuid[],
                    $10::uuid[], $11::bigint[], $12::bigint[])
            AS g (id, subject_kind, subject, name, cause, severity, labels, detail, job_id, execution_id, occurrences, remind_every_ms)
        LEFT JOIN LATERAL (
            SELECT l.* FROM (
                SELECT i.silenced_until, i.silenced_by, i.silence_reason FROM sexton.incidents i
                WHERE i.subject_kind = g.subject_kind AND i.subject = g.subject ORDER BY i.opened_at DESC LIMIT 1) l
            WHERE l.silenced_until > $13) b ON true
        ORDER BY g.subject_kind, g.subject
        RETURNING id, silenced_until",
        &ids,
        &given.kinds,
        &given.subjects,
        &names,
        &given.causes,
        &severities,
        &labels,
        &given.details,
        &jobs as &[Option<Uuid>],
        &given.executions as &[Option<Uuid>],
        &given.occurrences,
        &reminders as &[Option<i64>],
        now
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    let silences: HashMap<Uuid, Option<DateTime<Utc>>> =
        rows.into_iter().map(|row| (row.id, row.silenced_until)).collect();
    let opened = ids
        .iter()
        .zip(places)
        .map(|(id, place)| (*place, (*id, silences.get(id).copied().flatten())));
    Ok(opened.collect())
}

/// The columns of some occurrences, as arrays of one length.
struct Given {
    places: Vec<i64>,
    kinds: Vec<String>,
    subjects: Vec<String>,
    occurrences: Vec<i64>,
    causes: Vec<String>,
    details: Vec<String>,
    executions: Vec<Option<Uuid>>,
}

impl Given {
    fn of(found: &[Found<'_>], places: &[usize]) -> Self {
        let chosen = || places.iter().map(|place| &found[*place]);
        let occurrences = || chosen().map(|one| one.occurrence);
        Self {
            places: places.iter().map(|place| *place as i64).collect(),
            kinds: occurrences().map(|one| one.subject_kind.as_str().to_owned()).collect(),
            subjects: occurrences().map(|one| one.subject.clone()).collect(),
            occurrences: occurrences().map(|one| i64::from(one.occurrences)).collect(),
            causes: occurrences().map(|one| one.cause.clone()).collect(),
            details: chosen().map(|one| one.detail.clone()).collect(),
            executions: occurrences().map(|one| one.execution).collect(),
        }
    }
}
