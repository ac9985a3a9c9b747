//! Records what became of a claim that was sent.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::duration::to_millis;
use sexton_model::heartbeat::MAX_OF_JOB;
use sqlx::PgConnection;
use uuid::Uuid;

use super::claim::HeartbeatClaim;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::{Now, Store, StoreError};

/// A heartbeat that was not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeartbeatFailure {
    /// Its id.
    pub id: i64,
    /// The job, whose later heartbeats wait as well.
    pub job: Uuid,
    /// In words.
    pub error: String,
    /// The wait before it is tried again.
    pub retry_in: Duration,
}

/// What became of a claim.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeartbeatResults {
    /// The heartbeats that were accepted.
    pub sent: Vec<i64>,
    /// Those that were not.
    pub failed: Vec<HeartbeatFailure>,
    /// The wait before anything is sent to the address, and why; `None`: it answers.
    pub address_waits: Option<(Duration, String)>,
}

/// Records the results. Changes no heartbeat that failed and whose lease is over, since another process may be sending it. Of each
/// job the newest [`MAX_OF_JOB`] rows stay.
///
/// # Errors
///
/// Those of the database; the heartbeats are sent again when the lease is over.
pub async fn record(
    store: &Store,
    claim: &HeartbeatClaim,
    results: &HeartbeatResults,
    now: Now,
) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    let at = instant(&mut tx, now).await?;
    // The address first, like a claim, so that neither waits for the other.
    let (waits, error) = results.address_waits.clone().unzip();
    sqlx::query!(
        "-- record_heartbeat_address
        UPDATE sexton.heartbeat_addresses SET
            failures = CASE WHEN $5::text IS NULL THEN 0 ELSE failures + 1 END,
            failing_since = CASE WHEN $5::text IS NOT NULL THEN coalesce(failing_since, $3::timestamptz) END,
            last_error = coalesce($5, last_error),
            last_sent_at = CASE WHEN $5::text IS NULL THEN $3::timestamptz ELSE last_sent_at END,
            next_send_at = CASE WHEN next_send_at <> $2 THEN next_send_at
                WHEN $5::text IS NOT NULL THEN $3::timestamptz + $4 * interval '1 millisecond' END
        WHERE address = $1",
        claim.address,
        claim.leased_until,
        at,
        waits.map_or(0.0, |wait| to_millis(wait) as f64),
        error
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    if !results.sent.is_empty() {
        sqlx::query!(
            // One may have become too old meanwhile.
            "-- record_heartbeats
            UPDATE sexton.heartbeats SET state = 'sent', finished_at = $2, last_error = NULL WHERE id = ANY ($1)",
            &results.sent,
            at
        )
        .execute(WithTimeout(&mut *tx))
        .await?;
    }
    if !results.failed.is_empty() {
        postpone(&mut tx, claim, &results.failed, at).await?;
    }
    let jobs: Vec<Uuid> = claim.heartbeats.iter().map(|one| one.job).collect();
    sqlx::query!(
        "-- trim_heartbeats
        DELETE FROM sexton.heartbeats h USING unnest($1::uuid[]) AS j (id)
        WHERE h.job_id = j.id AND h.state <> 'pending' AND h.id <= (
            SELECT n.id FROM sexton.heartbeats n WHERE n.job_id = j.id ORDER BY n.id DESC OFFSET $2 LIMIT 1)",
        &jobs,
        MAX_OF_JOB
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    commit(tx).await?;
    Ok(())
}

/// Postpones heartbeats, and with each the later ones of its job, so that nobody looks at those meanwhile.
async fn postpone(
    connection: &mut PgConnection,
    claim: &HeartbeatClaim,
    failed: &[HeartbeatFailure],
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    let ids: Vec<i64> = failed.iter().map(|one| one.id).collect();
    let jobs: Vec<Uuid> = failed.iter().map(|one| one.job).collect();
    let errors: Vec<String> = failed.iter().map(|one| one.error.clone()).collect();
    let waits: Vec<f64> = failed.iter().map(|one| to_millis(one.retry_in) as f64).collect();
    sqlx::query!(
        "-- postpone_heartbeats
        UPDATE sexton.heartbeats h SET due_at = $5::timestamptz + f.wait * interval '1 millisecond',
            last_error = CASE WHEN h.id = f.id THEN f.error ELSE h.last_error END
        FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::float8[]) AS f (id, job, error, wait)
        WHERE h.job_id = f.job AND h.state = 'pending'
          AND CASE WHEN h.id = f.id THEN h.due_at = $6
                   ELSE h.due_at < $5::timestamptz + f.wait * interval '1 millisecond' END",
        &ids,
        &jobs,
        &errors,
        &waits,
        at,
        claim.leased_until
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
