//! Claims the heartbeats that are sent next to an address.

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::duration::to_millis;
use sexton_model::heartbeat::{HeartbeatEvent, HeartbeatMessage, JobHeartbeat, MAX_AGE};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::alerts::claim::{ClaimFilter, LEASE_S};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::error::parse_column;
use crate::{Now, Store, StoreError};

/// Most heartbeats in a claim, of as many jobs; they are sent at the same time.
pub const MAX_BATCH: usize = 16;

/// A heartbeat to send.
#[derive(Clone, PartialEq, Debug)]
pub struct ClaimedHeartbeat {
    /// Its id.
    pub id: i64,
    /// The job's id.
    pub job: Uuid,
    /// What is sent.
    pub message: HeartbeatMessage,
    /// Where; an error: the job's settings cannot be read.
    pub settings: Result<JobHeartbeat, String>,
    /// How often it was tried, with this time.
    pub tries: i32,
}

/// What is to be sent to an address.
#[derive(Clone, PartialEq, Debug)]
pub struct HeartbeatClaim {
    /// The address.
    pub address: String,
    /// The heartbeats, each of another job.
    pub heartbeats: Vec<ClaimedHeartbeat>,
    /// How many were dropped, since they are too old or their jobs have no heartbeat any more.
    pub dropped: usize,
    /// Claims in a row of which the address accepted nothing.
    pub failures: i32,
    /// The instant of the claim.
    pub at: DateTime<Utc>,
    /// Until when nobody else sends them.
    pub leased_until: DateTime<Utc>,
}

/// What a claim found.
#[derive(Clone, PartialEq, Debug)]
pub enum ClaimedHeartbeats {
    /// No address has anything due.
    Nothing,
    /// Something is to be sent.
    Delivery(HeartbeatClaim),
    /// An address has nothing to send now; this many heartbeats were dropped, as in [`HeartbeatClaim::dropped`].
    Dropped(usize),
}

/// Claims what is due to the address that was sent something longest ago: the first heartbeat of each job, or a single one if the
/// address fails.
///
/// # Errors
///
/// Those of the database; nothing was claimed.
pub async fn claim(
    store: &Store,
    filter: ClaimFilter<'_>,
    now: Now,
) -> Result<ClaimedHeartbeats, StoreError> {
    let mut tx = store.begin().await?;
    let taken = sqlx::query!(
        r#"-- take_heartbeat_address
        WITH t AS MATERIALIZED (SELECT coalesce($1, clock_timestamp()) AS now)
        SELECT a.address, a.failures, t.now AS "now!" FROM sexton.heartbeat_addresses a CROSS JOIN t
        WHERE (a.next_send_at IS NULL OR a.next_send_at <= t.now) AND NOT a.address = ANY ($2) AND ($3 OR a.failures = 0)
          AND EXISTS (SELECT FROM sexton.heartbeats h
                      WHERE h.address = a.address AND h.state = 'pending' AND h.due_at <= t.now)
        ORDER BY a.last_sent_at NULLS FIRST, a.address LIMIT 1 FOR UPDATE OF a SKIP LOCKED"#,
        now,
        filter.busy,
        filter.allows_failing
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await?;
    let Some(taken) = taken else { return Ok(ClaimedHeartbeats::Nothing) };
    let (address, failures, at) = (taken.address, taken.failures, taken.now);
    let limit = if failures > 0 { 1 } else { MAX_BATCH };
    let (heartbeats, unwanted) = read_first(&mut tx, &address, at, limit).await?;
    if !unwanted.is_empty() {
        drop_unwanted(&mut tx, &unwanted, at).await?;
    }
    if heartbeats.is_empty() {
        // Those that are due wait behind an earlier one of their job.
        let until = at + TimeDelta::seconds(i64::from(unwanted.is_empty()));
        set_next_send(&mut tx, &address, until).await?;
        commit(tx).await?;
        return Ok(ClaimedHeartbeats::Dropped(unwanted.len()));
    }
    let leased_until = at + TimeDelta::seconds(LEASE_S);
    let ids: Vec<i64> = heartbeats.iter().map(|one| one.id).collect();
    sqlx::query!(
        "-- lease_heartbeats
        UPDATE sexton.heartbeats SET due_at = $2, tries = tries + 1 WHERE id = ANY ($1)",
        &ids,
        leased_until
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    set_next_send(&mut tx, &address, leased_until).await?;
    commit(tx).await?;
    Ok(ClaimedHeartbeats::Delivery(HeartbeatClaim {
        address,
        heartbeats,
        dropped: unwanted.len(),
        failures,
        at,
        leased_until,
    }))
}

/// Reads the first heartbeat of each job that is due, the oldest first, and the ids of those that are too old or whose job has no
/// heartbeat any more.
async fn read_first(
    connection: &mut PgConnection,
    address: &str,
    now: DateTime<Utc>,
    limit: usize,
) -> Result<(Vec<ClaimedHeartbeat>, Vec<i64>), StoreError> {
    let rows = sqlx::query!(
        r#"-- first_heartbeats
        SELECT h.id, h.job_id, h.execution_id, h.attempt, h.event, h.detail, h.tries,
               coalesce(j.deleted_name, j.name) AS "job_name?", j.heartbeat AS "heartbeat?",
               h.created_at <= $2::timestamptz - $4 * interval '1 millisecond' AS "is_old!"
        FROM sexton.heartbeats h LEFT JOIN sexton.jobs j ON j.id = h.job_id
        WHERE h.address = $1 AND h.state = 'pending' AND h.due_at <= $2
          AND NOT EXISTS (SELECT FROM sexton.heartbeats e
                          WHERE e.job_id = h.job_id AND e.state = 'pending' AND e.id < h.id)
        ORDER BY h.due_at, h.id LIMIT $3"#,
        address,
        now,
        limit as i64,
        to_millis(MAX_AGE) as f64
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    let (mut heartbeats, mut unwanted) = (Vec::new(), Vec::new());
    for row in rows {
        let (Some(job), Some(settings), false) = (row.job_name, row.heartbeat, row.is_old) else {
            unwanted.push(row.id);
            continue;
        };
        let settings: Result<JobHeartbeat, _> = serde_json::from_value(settings);
        heartbeats.push(ClaimedHeartbeat {
            id: row.id,
            job: row.job_id,
            message: HeartbeatMessage {
                event: parse_column("heartbeats.event", &row.event, HeartbeatEvent::parse)?,
                job,
                execution: row.execution_id.to_string(),
                attempt: row.attempt,
                error: row.detail,
            },
            settings: settings.map_err(|error| error.to_string()),
            tries: row.tries + 1,
        });
    }
    Ok((heartbeats, unwanted))
}

async fn drop_unwanted(
    connection: &mut PgConnection,
    ids: &[i64],
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- drop_unwanted_heartbeats
        UPDATE sexton.heartbeats SET state = 'dropped', finished_at = $2 WHERE id = ANY ($1) AND state = 'pending'",
        ids,
        at
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

async fn set_next_send(
    connection: &mut PgConnection,
    address: &str,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- set_next_heartbeat
        UPDATE sexton.heartbeat_addresses SET next_send_at = $2 WHERE address = $1",
        address,
        at
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
