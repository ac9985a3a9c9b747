//! Requests: created, listed, shown.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use sexton_model::approval::{
    MAX_PROPOSAL_BYTES, MAX_WAITING_REQUESTS, MAX_WAITING_REQUESTS_OF_PERSON, ProposalKind,
    REQUEST_LIFETIME,
};

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::operator::{AuditContext, record_jobless_action};
use crate::{Now, Store, StoreError};

/// An approval.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Approval {
    /// Who approved.
    pub actor: String,
    /// Why, if given.
    pub reason: Option<String>,
    /// When.
    pub approved_at: DateTime<Utc>,
}

/// An action that waits for further people, or what became of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApprovalRequest {
    /// Its number.
    pub id: i64,
    /// `edit`, `discard`, `bulk_requeue`, `bulk_discard`, `bulk_cancel` or `backfill`.
    pub kind: String,
    /// The whole action as it will be carried out, with what the person had seen; in lists without `params` and `ids`, which can be large.
    pub proposal: Value,
    /// How many people it takes, the one who requests among them.
    pub people: i16,
    /// The names of the rules by which it waits.
    pub rules: Vec<String>,
    /// Who requested it.
    pub requested_by: String,
    /// The jobs to which that one was restricted; absent: to none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_jobs: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// When.
    pub requested_at: DateTime<Utc>,
    /// From when on it is no longer carried out.
    pub expires_at: DateTime<Utc>,
    /// `waiting`, `approved` (and not carried out yet), `carried_out`, `rejected`, `failed` or `expired`.
    pub state: String,
    /// When it was carried out, rejected, or failed.
    pub ended_at: Option<DateTime<Utc>>,
    /// Who approved it last, or rejected it.
    pub ended_by: Option<String>,
    /// What became of it, in words.
    pub outcome: Option<String>,
    /// The bulk that it became.
    pub bulk_id: Option<i64>,
    /// Who has approved it, the first one first.
    pub approvals: Vec<Approval>,
}

/// A request to be created.
#[derive(Clone, Copy, Debug)]
pub struct NewRequest<'a> {
    /// What is requested.
    pub kind: ProposalKind,
    /// [`ApprovalRequest::proposal`].
    pub proposal: &'a Value,
    /// SHA-256 of the proposal without the moment of its preview, in hexadecimal digits: equal requests have the same.
    pub digest: &'a str,
    /// The same with secrets masked, for the audit.
    pub shown_digest: &'a str,
    /// [`ApprovalRequest::people`].
    pub people: i16,
    /// [`ApprovalRequest::rules`].
    pub rules: &'a [String],
    /// The names of the person who requests it.
    pub names: &'a [String],
}

/// What became of a request to be created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestCreation {
    /// It waits; its number. An equal one of the same person that waited already is this one.
    Created(i64),
    /// It is larger than [`MAX_PROPOSAL_BYTES`].
    TooLarge,
    /// [`MAX_WAITING_REQUESTS`] wait already.
    TooMany,
    /// [`MAX_WAITING_REQUESTS_OF_PERSON`] of this person wait already.
    TooManyOfPerson,
}

/// Creates a request, and records that in the audit. A crash before the commit leaves nothing.
///
/// # Errors
///
/// [`StoreError`]; nothing was written, unless the answer was lost.
pub async fn create(
    store: &Store,
    new: NewRequest<'_>,
    by: AuditContext<'_>,
    now: Now,
) -> Result<RequestCreation, StoreError> {
    let mut tx = store.begin().await?;
    let at = instant(&mut tx, now).await?;
    let waiting = sqlx::query!(
        r#"-- count_approval_requests
        SELECT count(*) AS "all!", count(*) FILTER (WHERE requested_by_names && $2) AS "of_person!",
               min(id) FILTER (WHERE requested_by = $3 AND digest = $4 AND reason IS NOT DISTINCT FROM $5) AS equal,
               octet_length($6::jsonb::text) AS "bytes!"
        FROM sexton.approval_requests WHERE state = 'waiting' AND expires_at > $1"#,
        at,
        new.names,
        by.actor,
        new.digest,
        by.reason,
        new.proposal
    )
    .fetch_one(WithTimeout(&mut *tx))
    .await?;
    if waiting.bytes > MAX_PROPOSAL_BYTES {
        return Ok(RequestCreation::TooLarge);
    }
    // Two at the same time may be one too many, or two of the same, which does no harm.
    if let Some(equal) = waiting.equal {
        return Ok(RequestCreation::Created(equal));
    }
    if waiting.all >= i64::from(MAX_WAITING_REQUESTS) {
        return Ok(RequestCreation::TooMany);
    }
    if waiting.of_person >= i64::from(MAX_WAITING_REQUESTS_OF_PERSON) {
        return Ok(RequestCreation::TooManyOfPerson);
    }
    let id = sqlx::query_scalar!(
        "-- create_approval_request
        INSERT INTO sexton.approval_requests (kind, proposal, people, rules, requested_by, requested_by_names, reason,
            requested_at, expires_at, digest)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id",
        new.kind.as_str(),
        new.proposal,
        new.people,
        new.rules,
        by.actor,
        new.names,
        by.reason,
        at,
        at + REQUEST_LIFETIME,
        new.digest
    )
    .fetch_one(WithTimeout(&mut *tx))
    .await?;
    let after = json!({
        "request": id, "kind": new.kind.as_str(), "digest": new.shown_digest, "people": new.people, "rules": new.rules,
    });
    record_jobless_action(&mut tx, "request_approval", (None, Some(after)), by, at).await?;
    commit(tx).await?;
    Ok(RequestCreation::Created(id))
}

/// Lists requests, the newest first, behind `before`: those that wait, or all; at most `limit`.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list(
    store: &Store,
    with_ended: bool,
    before: Option<i64>,
    limit: i64,
    now: Now,
) -> Result<Vec<ApprovalRequest>, StoreError> {
    read(store, None, with_ended, before, limit, now).await
}

/// Returns a request.
///
/// # Errors
///
/// [`StoreError`].
pub async fn find(store: &Store, id: i64, now: Now) -> Result<Option<ApprovalRequest>, StoreError> {
    Ok(read(store, Some(id), true, None, 1, now).await?.pop())
}

async fn read(
    store: &Store,
    id: Option<i64>,
    with_ended: bool,
    before: Option<i64>,
    limit: i64,
    now: Now,
) -> Result<Vec<ApprovalRequest>, StoreError> {
    let rows = sqlx::query!(
        r#"-- read_approval_requests
        SELECT r.id, r.kind, CASE WHEN $1::bigint IS NULL THEN r.proposal - 'params' - 'ids' ELSE r.proposal END AS "proposal!",
               r.people, r.rules, r.requested_by, r.only_jobs, r.reason, r.requested_at, r.expires_at,
               CASE WHEN r.state <> 'waiting' THEN r.state
                    WHEN r.expires_at <= coalesce($5, now()) THEN 'expired'
                    WHEN (SELECT count(*) FROM sexton.approvals a WHERE a.request_id = r.id) + 1 >= r.people
                        THEN 'approved'
                    ELSE 'waiting' END AS "state!",
               r.ended_at, r.ended_by, r.outcome, r.bulk_id
        FROM sexton.approval_requests r
        WHERE ($1::bigint IS NULL OR r.id = $1)
          AND ($2 OR r.state = 'waiting' AND r.expires_at > coalesce($5, now()))
          AND ($3::bigint IS NULL OR r.id < $3)
        ORDER BY r.id DESC LIMIT $4"#,
        id,
        with_ended,
        before,
        limit,
        now
    )
    .fetch_all(store.with_timeout())
    .await?;
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    let mut approvals = list_approvals(store, &ids).await?;
    let requests = rows.into_iter().map(|row| ApprovalRequest {
        id: row.id,
        kind: row.kind,
        proposal: row.proposal,
        people: row.people,
        rules: row.rules,
        requested_by: row.requested_by,
        only_jobs: row.only_jobs,
        reason: row.reason,
        requested_at: row.requested_at,
        expires_at: row.expires_at,
        state: row.state,
        ended_at: row.ended_at,
        ended_by: row.ended_by,
        outcome: row.outcome,
        bulk_id: row.bulk_id,
        approvals: approvals.remove(&row.id).unwrap_or_default(),
    });
    Ok(requests.collect())
}

async fn list_approvals(
    store: &Store,
    ids: &[i64],
) -> Result<HashMap<i64, Vec<Approval>>, StoreError> {
    let rows = sqlx::query!(
        "-- list_approvals
        SELECT request_id, actor, reason, approved_at FROM sexton.approvals WHERE request_id = ANY ($1)
        ORDER BY request_id, approved_at",
        ids
    )
    .fetch_all(store.with_timeout())
    .await?;
    let mut all: HashMap<i64, Vec<Approval>> = HashMap::new();
    for row in rows {
        let (actor, reason, approved_at) = (row.actor, row.reason, row.approved_at);
        all.entry(row.request_id).or_default().push(Approval { actor, reason, approved_at });
    }
    Ok(all)
}

/// How many requests wait, and when that was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitingRequests {
    /// When they were counted, by the database's clock.
    pub now: DateTime<Utc>,
    /// The number of those that have neither ended nor expired.
    pub count: i64,
}

/// Counts the requests that have neither ended nor expired, and reads the database's clock.
///
/// # Errors
///
/// [`StoreError`].
pub async fn count_waiting(store: &Store) -> Result<WaitingRequests, StoreError> {
    Ok(sqlx::query_as!(
        WaitingRequests,
        r#"-- count_waiting_approvals
        SELECT clock_timestamp() AS "now!", count(*) AS "count!" FROM sexton.approval_requests
        WHERE state = 'waiting' AND expires_at > now()"#
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Returns an actor and, if it is a token, who created it, and so on; at most 100.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list_creators(store: &Store, actor: &str) -> Result<Vec<String>, StoreError> {
    // PostgreSQL writes a token's name in the audit as `ActorKind::Token` of the model does.
    Ok(sqlx::query_scalar!(
        r#"-- creators_of_tokens
        WITH RECURSIVE actors (actor) AS (
            SELECT $1::text
            UNION
            SELECT t.created_by FROM actors a JOIN sexton.tokens t ON a.actor = 'token ' || t.name)
        SELECT actor AS "actor!" FROM actors LIMIT 100"#,
        actor
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Returns the labels of the jobs of these names, those of deleted jobs of that name among them.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list_job_labels(
    store: &Store,
    names: &[String],
) -> Result<HashMap<String, Vec<BTreeMap<String, String>>>, StoreError> {
    let rows = sqlx::query!(
        r#"-- labels_of_jobs
        SELECT coalesce(deleted_name, name) AS "name!", labels FROM sexton.jobs
        WHERE name = ANY ($1) OR deleted_name = ANY ($1)"#,
        names
    )
    .fetch_all(store.with_timeout())
    .await?;
    let mut all: HashMap<String, Vec<BTreeMap<String, String>>> = HashMap::new();
    for row in rows {
        let labels = serde_json::from_value(row.labels).unwrap_or_default();
        all.entry(row.name).or_default().push(labels);
    }
    Ok(all)
}
