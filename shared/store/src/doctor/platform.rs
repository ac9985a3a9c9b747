//! Who is at work, and what nobody has seen to.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{Now, Store, StoreError};

/// A process that has not said goodbye.
#[derive(Clone, PartialEq, Debug)]
pub struct Process {
    /// Drawn at its start.
    pub id: Uuid,
    /// `scheduler` or `worker`.
    pub kind: String,
    /// `SEXTON_INSTANCE`.
    pub name: String,
    /// Of the program.
    pub version: String,
    /// Release of the time zone data in a scheduler.
    pub tz_version: Option<String>,
    /// As its own `/readyz` said at its last heartbeat.
    pub ready: bool,
    /// How many tasks it runs at once.
    pub slots: i32,
    /// That it may hold for its own work; none of a version that does not say.
    pub db_connections: Option<i32>,
    /// Milliseconds since its last heartbeat, by the database's clock.
    pub silent_ms: i64,
    /// How many attempts it has open.
    pub running: i64,
}

/// The processes that have not said goodbye, however long ago they were heard of; at most 1,000.
pub async fn processes(store: &Store, now: Now) -> Result<Vec<Process>, StoreError> {
    Ok(sqlx::query_as!(
        Process,
        r#"-- doctor_processes
        SELECT id, kind, name, version, tz_version, ready, slots, db_connections,
               (extract(epoch FROM coalesce($1, now()) - heartbeat_at) * 1000)::bigint AS "silent_ms!",
               (SELECT count(*) FROM sexton.executions e
                WHERE e.state = 'running' AND e.worker_id = i.id) AS "running!"
        FROM sexton.instances i WHERE stopped_at IS NULL
        ORDER BY kind, name, started_at DESC LIMIT 1000"#,
        now
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Open attempts whose lease is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OverdueLeases {
    /// How many.
    pub overdue: i64,
    /// Since when the first of them.
    pub oldest: Option<DateTime<Utc>>,
}

/// Counts the leases that were over `grace_ms` ago already.
pub async fn count_overdue_leases(
    store: &Store,
    grace_ms: i64,
    now: Now,
) -> Result<OverdueLeases, StoreError> {
    Ok(sqlx::query_as!(
        OverdueLeases,
        r#"-- doctor_leases
        SELECT count(*) AS "overdue!", min(lease_until) AS oldest FROM sexton.executions
        WHERE state = 'running'
          AND lease_until < coalesce($2, now()) - $1 * interval '1 millisecond'"#,
        grace_ms as f64,
        now
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// The newest release of the time zone data that a job's cursor was computed by.
pub async fn newest_tz_data(store: &Store) -> Result<Option<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        "-- doctor_tz_data
        SELECT max(tz_version) FROM sexton.jobs WHERE deleted_at IS NULL"
    )
    .fetch_one(store.with_timeout())
    .await?)
}
