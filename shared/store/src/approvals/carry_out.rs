//! Carries out a request that is approved: once, whatever crashes.

use serde_json::Value;
use sexton_model::approval::CLAIM_LIFETIME;
use sexton_model::ticket::truncate;
use uuid::Uuid;

use crate::approved::{Claim, end_carried_out};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::operator::AuditContext;
use crate::{Now, Store, StoreError};

/// The longest outcome that is kept. A CHECK of the table allows as many characters.
const MAX_OUTCOME_BYTES: usize = 4_000;

/// A request that this process carries out.
#[derive(Clone, PartialEq, Debug)]
pub struct ClaimedRequest {
    /// The right to do so.
    pub claim: Claim,
    /// What to do.
    pub proposal: Value,
    /// Who requested it.
    pub requested_by: String,
    /// Why.
    pub reason: Option<String>,
    /// Whether another process has begun before, and may have done a part.
    pub is_repeated: bool,
}

/// Claims a request that enough people have approved; `None`: it is not approved, has ended or expired, or another process has claimed it within
/// [`CLAIM_LIFETIME`].
///
/// # Errors
///
/// [`StoreError`].
pub async fn claim(store: &Store, id: i64, now: Now) -> Result<Option<ClaimedRequest>, StoreError> {
    let token = Uuid::new_v4();
    let row = sqlx::query!(
        r#"-- claim_approval_request
        UPDATE sexton.approval_requests r
        SET claim = $2, claimed_at = coalesce($3::timestamptz, now()), claims = claims + 1
        WHERE id = $1 AND state = 'waiting' AND expires_at > coalesce($3, now())
          AND (claimed_at IS NULL OR claimed_at <= coalesce($3, now()) - $4::bigint * interval '1 second')
          AND (SELECT count(*) FROM sexton.approvals a WHERE a.request_id = r.id) + 1 >= r.people
        RETURNING proposal, requested_by, reason, claims > 1 AS "is_repeated!""#,
        id,
        token,
        now,
        CLAIM_LIFETIME.num_seconds()
    )
    .fetch_optional(store.with_timeout())
    .await?;
    Ok(row.map(|row| ClaimedRequest {
        claim: Claim { request: id, token },
        proposal: row.proposal,
        requested_by: row.requested_by,
        reason: row.reason,
        is_repeated: row.is_repeated,
    }))
}

/// Ends the request of a backfill, of which all batches are done. A crash before leaves batches that the next process finds done.
///
/// # Errors
///
/// [`StoreError`]; [`StoreError::Inconsistent`] if another process has claimed the request meanwhile.
pub async fn end_backfilled(
    store: &Store,
    claim: Claim,
    outcome: &str,
    now: Now,
) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    let at = crate::connection::instant::instant(&mut tx, now).await?;
    end_carried_out(&mut tx, claim, None, outcome, at).await?;
    commit(tx).await?;
    Ok(())
}

/// Ends a request that can no longer be carried out as it was approved, with the reason, and records that in the audit.
///
/// # Errors
///
/// [`StoreError`]; the request is claimed again after [`CLAIM_LIFETIME`].
pub async fn fail(
    store: &Store,
    claim: Claim,
    outcome: &str,
    by: AuditContext<'_>,
    now: Now,
) -> Result<(), StoreError> {
    // Also in the audit, where nothing else limits the text of an error.
    let outcome = truncate(outcome, MAX_OUTCOME_BYTES);
    let mut tx = store.begin().await?;
    let at = crate::connection::instant::instant(&mut tx, now).await?;
    let done = sqlx::query!(
        "-- fail_approval_request
        UPDATE sexton.approval_requests SET state = 'failed', ended_at = $3, ended_by = $4, outcome = $5
        WHERE id = $1 AND claim = $2 AND state = 'waiting'",
        claim.request,
        claim.token,
        at,
        by.actor,
        outcome
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    if done.rows_affected() == 0 {
        return Ok(());
    }
    let before = serde_json::json!({"request": claim.request, "state": "waiting"});
    let after =
        serde_json::json!({"request": claim.request, "state": "failed", "outcome": outcome});
    let change = (Some(before), Some(after));
    crate::operator::record_jobless_action(&mut tx, "fail_request", change, by, at).await?;
    commit(tx).await?;
    Ok(())
}

/// Gives a claim back: nothing was done, or what was done is found by the next process.
///
/// # Errors
///
/// [`StoreError`].
pub async fn release(store: &Store, claim: Claim) -> Result<(), StoreError> {
    sqlx::query!(
        "-- release_approval_request
        UPDATE sexton.approval_requests SET claimed_at = NULL WHERE id = $1 AND claim = $2 AND state = 'waiting'",
        claim.request,
        claim.token
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}
