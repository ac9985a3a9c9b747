//! Approvals and rejections of a request.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde_json::json;
use sexton_model::approval::{OpenRequest, ProposalKind, VoteRefusal};
use sqlx::PgConnection;

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::operator::{AuditContext, record_jobless_action, set_lock_timeout};
use crate::{Now, Store, StoreError};

/// What became of an approval or a rejection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VoteOutcome {
    /// It is recorded.
    Recorded,
    /// Enough people had approved it before: it is to be carried out.
    ApprovedBefore,
    /// The person may not approve it.
    Refused(VoteRefusal),
    /// A process carries it out now.
    UnderWay,
    /// It has ended.
    Ended,
    /// There is no such request.
    Missing,
}

struct LockedRequest {
    open: OpenRequest,
    kind: String,
    is_waiting: bool,
    was_begun: bool,
}

/// Records that a person, known by `names`, approves a request, with the audit. It takes `people` from now on, unless it takes more, or somebody
/// carries it out already.
///
/// # Errors
///
/// [`StoreError`]; nothing was written, unless the answer was lost.
pub async fn approve(
    store: &Store,
    id: i64,
    people: i16,
    names: &[String],
    by: AuditContext<'_>,
    now: Now,
) -> Result<VoteOutcome, StoreError> {
    let mut tx = store.begin().await?;
    set_lock_timeout(&mut tx).await?;
    let Some(mut request) = lock(&mut tx, id).await? else { return Ok(VoteOutcome::Missing) };
    let at = instant(&mut tx, now).await?;
    if !request.is_waiting {
        return Ok(VoteOutcome::Ended);
    }
    let is_raised = people.unsigned_abs() > request.open.people && !request.open.is_claimed(at);
    if is_raised {
        request.open.people = people.unsigned_abs();
    }
    let open = &request.open;
    if open.is_approved() && at < open.expires_at {
        return Ok(VoteOutcome::ApprovedBefore);
    }
    if let Err(refusal) = open.judge(&names.iter().cloned().collect(), at) {
        return Ok(VoteOutcome::Refused(refusal));
    }
    if is_raised {
        sqlx::query!(
            "-- raise_people_of_request
            UPDATE sexton.approval_requests SET people = $2 WHERE id = $1",
            id,
            people
        )
        .execute(WithTimeout(&mut *tx))
        .await?;
    }
    sqlx::query!(
        "-- approve_request
        INSERT INTO sexton.approvals (request_id, actor, actor_names, reason, approved_at) VALUES ($1, $2, $3, $4, $5)",
        id,
        by.actor,
        names,
        by.reason,
        at
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    let people = open.approvers.len() + 1;
    let before = json!({"request": id, "kind": request.kind, "people": people});
    let after = json!({"request": id, "kind": request.kind, "people": people + 1});
    record_jobless_action(&mut tx, "approve_request", (Some(before), Some(after)), by, at).await?;
    commit(tx).await?;
    Ok(VoteOutcome::Recorded)
}

/// Rejects a request that has not ended, with the audit. The person who requested it may do so, too.
///
/// # Errors
///
/// [`StoreError`]; nothing was written, unless the answer was lost.
pub async fn reject(
    store: &Store,
    id: i64,
    by: AuditContext<'_>,
    now: Now,
) -> Result<VoteOutcome, StoreError> {
    let mut tx = store.begin().await?;
    set_lock_timeout(&mut tx).await?;
    let Some(request) = lock(&mut tx, id).await? else { return Ok(VoteOutcome::Missing) };
    let at = instant(&mut tx, now).await?;
    if !request.is_waiting {
        return Ok(VoteOutcome::Ended);
    }
    if at >= request.open.expires_at {
        return Ok(VoteOutcome::Refused(VoteRefusal::Expired));
    }
    if request.open.is_claimed(at) {
        return Ok(VoteOutcome::UnderWay);
    }
    let outcome = match by.reason {
        // Each of its batches is a transaction.
        Some(reason) if request.was_begun && request.kind == ProposalKind::Backfill.as_str() => {
            Some(format!("{reason} (the firings that were made before stay)"))
        }
        reason => reason.map(str::to_owned),
    };
    sqlx::query!(
        "-- reject_request
        UPDATE sexton.approval_requests SET state = 'rejected', ended_at = $2, ended_by = $3, outcome = left($4, 4000)
        WHERE id = $1 AND state = 'waiting'",
        id,
        at,
        by.actor,
        outcome
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    let before = json!({"request": id, "kind": request.kind, "state": "waiting"});
    let after = json!({"request": id, "kind": request.kind, "state": "rejected"});
    record_jobless_action(&mut tx, "reject_request", (Some(before), Some(after)), by, at).await?;
    commit(tx).await?;
    Ok(VoteOutcome::Recorded)
}

/// Locks a request until the transaction ends; `None`: there is no such request.
async fn lock(connection: &mut PgConnection, id: i64) -> Result<Option<LockedRequest>, StoreError> {
    let row = sqlx::query!(
        r#"-- lock_approval_request
        SELECT kind, people, requested_by_names, expires_at, claimed_at, state = 'waiting' AS "is_waiting!",
               claims > 0 AS "was_begun!"
        FROM sexton.approval_requests WHERE id = $1 FOR UPDATE"#,
        id
    )
    .fetch_optional(WithTimeout(&mut *connection))
    .await?;
    let Some(row) = row else { return Ok(None) };
    let approvers = sqlx::query_scalar!(
        "-- approvers_of_request
        SELECT actor_names FROM sexton.approvals WHERE request_id = $1",
        id
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    let names = |names: Vec<String>| names.into_iter().collect::<BTreeSet<_>>();
    let claimed_at: Option<DateTime<Utc>> = row.claimed_at;
    let open = OpenRequest {
        requester: names(row.requested_by_names),
        approvers: approvers.into_iter().map(names).collect(),
        people: row.people.unsigned_abs(),
        expires_at: row.expires_at,
        claimed_at,
    };
    let (kind, is_waiting, was_begun) = (row.kind, row.is_waiting, row.was_begun);
    Ok(Some(LockedRequest { open, kind, is_waiting, was_begun }))
}
