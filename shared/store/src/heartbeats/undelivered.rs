//! Heartbeats that do not arrive, and the newest one of a job, for people.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::duration::to_millis;
use sexton_model::heartbeat::{DROPPED_COUNTS_FOR, UNDELIVERED_AFTER};
use uuid::Uuid;

use crate::{Now, Store, StoreError};

/// Most rows that are read for [`list`].
const MAX_ROWS: i64 = 1_000;

/// A job whose heartbeats do not arrive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Undelivered {
    /// The job's name.
    pub job: String,
    /// The address.
    pub address: String,
    /// When the first one that did not arrive was written.
    pub since: DateTime<Utc>,
    /// The last failure.
    pub error: String,
}

/// The newest heartbeat of a job that was tried, or else that waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LastHeartbeat {
    pub event: String,
    pub state: String,
    pub created_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    pub tries: i32,
    pub last_error: Option<String>,
}

/// Lists the jobs of which a heartbeat was tried, has not arrived for [`UNDELIVERED_AFTER`], and no later one has arrived. One that was
/// dropped counts for [`DROPPED_COUNTS_FOR`].
pub async fn list(store: &Store, now: Now) -> Result<Vec<Undelivered>, StoreError> {
    let rows = sqlx::query_as!(
        Undelivered,
        r#"-- undelivered_heartbeats
        SELECT j.name AS job, h.address, h.created_at AS since, coalesce(h.last_error, 'it is being tried') AS "error!"
        FROM sexton.heartbeats h JOIN sexton.jobs j ON j.id = h.job_id
        WHERE h.state <> 'sent' AND h.tries > 0
          AND (h.finished_at IS NULL OR h.finished_at > coalesce($1, now()) - $4 * interval '1 millisecond')
          AND h.created_at <= coalesce($1, now()) - $2 * interval '1 millisecond'
          AND j.heartbeat IS NOT NULL AND j.deleted_at IS NULL
          AND NOT EXISTS (SELECT FROM sexton.heartbeats s
                          WHERE s.job_id = h.job_id AND s.state = 'sent' AND s.id > h.id)
        ORDER BY h.created_at, h.id LIMIT $3"#,
        now,
        to_millis(UNDELIVERED_AFTER) as f64,
        MAX_ROWS,
        to_millis(DROPPED_COUNTS_FOR) as f64
    )
    .fetch_all(store.with_timeout())
    .await?;
    let mut found: Vec<Undelivered> = Vec::new();
    for row in rows {
        match found.iter_mut().find(|one| one.job == row.job) {
            Some(one) => one.error = row.error,
            None => found.push(row),
        }
    }
    Ok(found)
}

/// Returns the newest heartbeat of a job; one that was tried comes before those that wait behind it.
pub async fn last(store: &Store, job: Uuid) -> Result<Option<LastHeartbeat>, StoreError> {
    Ok(sqlx::query_as!(
        LastHeartbeat,
        "-- last_heartbeat
        SELECT event, state, created_at, finished_at, tries, last_error FROM sexton.heartbeats WHERE job_id = $1
        ORDER BY tries > 0 DESC, id DESC LIMIT 1",
        job
    )
    .fetch_optional(store.with_timeout())
    .await?)
}
