//! Active processes, and overdue work.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{Now, Store, StoreError};

/// A process that has not stopped.
#[derive(Clone, PartialEq, Debug)]
pub struct Process {
    /// Drawn at its start.
    pub id: Uuid,
    /// `scheduler` or `worker`.
    pub kind: String,
    /// `SEXTON_INSTANCE`.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// Release of the time zone data in a scheduler.
    pub tz_version: Option<String>,
    /// Its `/readyz` answer at its last heartbeat.
    pub ready: bool,
    /// How many tasks it runs at once.
    pub slots: i32,
    /// Maximum number of connections for its own work; `None` for versions that do not report it.
    pub db_connections: Option<i32>,
    /// Milliseconds since its last heartbeat, by the database's clock.
    pub silent_ms: i64,
    /// Number of its open attempts.
    pub running: i64,
}

/// Returns the processes that have not stopped, however old their heartbeats; at most 1,000.
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
    /// Number of attempts.
    pub overdue: i64,
    /// When the first of these leases ended.
    pub oldest: Option<DateTime<Utc>>,
}

/// Counts the leases that ended more than `grace_ms` ago.
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

/// Returns the newest version of the time zone data among the jobs' cursors.
pub async fn newest_tz_data(store: &Store) -> Result<Option<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        "-- doctor_tz_data
        SELECT max(tz_version) FROM sexton.jobs WHERE deleted_at IS NULL"
    )
    .fetch_one(store.with_timeout())
    .await?)
}
