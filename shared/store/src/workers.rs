//! Workers, as `sexton workers` shows them: alive, silent or gone, and the executions that they run.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use crate::{Now, Store, StoreError};

/// A worker process.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Worker {
    /// The process.
    pub id: Uuid,
    /// `SEXTON_INSTANCE`.
    pub name: String,
    /// Its process id on its host.
    pub pid: i32,
    /// The program's version.
    pub version: String,
    /// The pools that it consumes from.
    pub pools: Vec<String>,
    /// How many tasks it runs at once.
    pub slots: i32,
    /// Number of slots for each of `pools`, in the same order; `None`: `slots` for all pools together.
    pub pool_slots: Option<Vec<i32>>,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// When its last heartbeat came.
    pub heartbeat_at: DateTime<Utc>,
    /// Its `/readyz` answer at that heartbeat.
    pub ready: bool,
    /// When it stopped, or was found dead.
    pub stopped_at: Option<DateTime<Utc>>,
    /// Number of its open attempts.
    pub running: i64,
    /// Milliseconds since the last heartbeat, by the database's clock.
    pub silent_ms: i64,
}

/// Which workers to list; every given condition must hold.
#[derive(Clone, Copy, Default, Debug)]
pub struct WorkerFilter<'a> {
    /// Also those that stopped, or sent no heartbeat for a day, until retention removes them.
    pub with_gone: bool,
    /// That consume from this pool.
    pub pool: Option<&'a str>,
    /// With this name.
    pub name: Option<&'a str>,
    /// With an id from the first to the second, both included.
    pub ids: Option<(Uuid, Uuid)>,
}

/// Lists workers: those at work first, then by name, the newest process of a name first.
pub async fn list(
    store: &Store,
    filter: &WorkerFilter<'_>,
    limit: i64,
    now: Now,
) -> Result<Vec<Worker>, StoreError> {
    let (first, last) = filter.ids.unzip();
    Ok(sqlx::query_as!(
        Worker,
        r#"-- list_workers
        SELECT i.id, name, pid, version, pools, slots, pool_slots, started_at, heartbeat_at, ready, stopped_at,
               coalesce(r.running, 0) AS "running!",
               (extract(epoch FROM coalesce($1, now()) - heartbeat_at) * 1000)::bigint AS "silent_ms!"
        FROM sexton.instances i
        LEFT JOIN (SELECT worker_id, count(*) AS running FROM sexton.executions
                   WHERE state = 'running' GROUP BY worker_id) r ON r.worker_id = i.id
        WHERE kind = 'worker'
          AND ($2 OR (stopped_at IS NULL AND heartbeat_at > coalesce($1, now()) - interval '1 day'))
          AND ($3::text IS NULL OR $3 = ANY (pools))
          AND ($4::text IS NULL OR name = $4)
          AND ($5::uuid IS NULL OR (i.id >= $5 AND i.id <= $6))
        ORDER BY stopped_at IS NOT NULL, name, started_at DESC, i.id LIMIT $7"#,
        now,
        filter.with_gone,
        filter.pool,
        filter.name,
        first,
        last,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// An execution that a worker runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunningExecution {
    /// The execution.
    pub id: Uuid,
    /// Its job's name.
    pub job_name: String,
    /// Its task type.
    pub task_type: String,
    /// Its pool.
    pub pool: String,
    /// The open attempt's number.
    pub attempt: i32,
    /// When the attempt was opened.
    pub started_at: Option<DateTime<Utc>>,
    /// When the attempt's lease ends unless the worker renews it.
    pub lease_until: Option<DateTime<Utc>>,
    /// Whether an operator has cancelled it.
    pub cancel_requested: bool,
}

/// Lists what a worker runs, the longest first; at most 1,000.
pub async fn list_running(
    store: &Store,
    worker: Uuid,
) -> Result<Vec<RunningExecution>, StoreError> {
    Ok(sqlx::query_as!(
        RunningExecution,
        "-- running_executions_of_worker
        SELECT e.id, j.name AS job_name, e.task_type, e.pool, e.attempt, e.started_at, e.lease_until,
               e.cancel_requested
        FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
        WHERE e.state = 'running' AND e.worker_id = $1
        ORDER BY e.started_at, e.id LIMIT 1000",
        worker
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Lists the task types that a worker offers, sorted; at most 1,000.
pub async fn list_task_types(store: &Store, worker: Uuid) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        "-- task_types_of_worker
        SELECT task_type FROM sexton.offers WHERE instance_id = $1 ORDER BY task_type LIMIT 1000",
        worker
    )
    .fetch_all(store.with_timeout())
    .await?)
}
