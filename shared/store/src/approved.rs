//! The right to carry out a request that was approved, and its end in the transaction that does so.

use chrono::{DateTime, Utc};
use sexton_model::approval::CLAIM_LIFETIME;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;

/// The right of one process to carry a request out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The request.
    pub request: i64,
    /// The process.
    pub token: Uuid,
}

/// Renews a claim in a transaction that carries out a part of its action. Returns whether the request is still approved and this process's: if not, the
/// transaction must not commit. One that expires while it is carried out without a pause goes on. The request can be neither rejected nor claimed by others until the commit.
///
/// # Errors
///
/// Those of the database.
pub(crate) async fn renew(
    connection: &mut PgConnection,
    claim: Claim,
    at: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let renewed = sqlx::query!(
        "-- renew_claim_of_request
        UPDATE sexton.approval_requests r SET claimed_at = $3
        WHERE id = $1 AND claim = $2 AND state = 'waiting'
          AND (expires_at > $3 OR claimed_at > $3 - $4::bigint * interval '1 second')
          AND (SELECT count(*) FROM sexton.approvals a WHERE a.request_id = r.id) + 1 >= r.people",
        claim.request,
        claim.token,
        at,
        CLAIM_LIFETIME.num_seconds()
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(renewed.rows_affected() == 1)
}

/// Ends a request in the transaction that carries its action out. It counts the approvals once more: without them, or if another process has
/// claimed the request meanwhile, the transaction must not commit.
///
/// A `bulk` that carries it out is of the jobs to which the requester was restricted, so that those can stop it; without any, of the approver's.
///
/// # Errors
///
/// [`StoreError::Inconsistent`]: it may not be carried out (any more).
pub(crate) async fn end_carried_out(
    connection: &mut PgConnection,
    claim: Claim,
    bulk: Option<i64>,
    outcome: &str,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    let done = sqlx::query!(
        "-- end_carried_out_request
        UPDATE sexton.approval_requests r
        SET state = 'carried_out', ended_at = greatest($3, requested_at), outcome = $4, bulk_id = $5,
            ended_by = (SELECT actor FROM sexton.approvals a WHERE a.request_id = r.id ORDER BY approved_at DESC LIMIT 1)
        WHERE id = $1 AND claim = $2 AND state = 'waiting'
          AND (SELECT count(*) FROM sexton.approvals a WHERE a.request_id = r.id) + 1 >= r.people",
        claim.request,
        claim.token,
        at,
        outcome,
        bulk
    )
    .execute(WithTimeout(&mut *connection))
    .await?;
    if let Some(bulk) = bulk {
        sqlx::query!(
            "-- scope_of_requested_bulk
            UPDATE sexton.bulks b SET only_jobs = r.only_jobs FROM sexton.approval_requests r
            WHERE b.id = $1 AND r.id = $2 AND r.only_jobs IS NOT NULL",
            bulk,
            claim.request
        )
        .execute(WithTimeout(connection))
        .await?;
    }
    let value = format!("request {} is not this process's to carry out", claim.request);
    if done.rows_affected() == 1 {
        Ok(())
    } else {
        Err(StoreError::Inconsistent { place: "approval_requests", value })
    }
}
