//! Scheduler and worker processes: which run, since when, and their last heartbeats.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::id::ProcessId;
use uuid::Uuid;

use crate::{Now, Store, StoreError};

/// A process, as it registers itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstanceRegistration {
    /// Drawn at its start.
    pub id: ProcessId,
    /// `scheduler` or `worker`.
    pub kind: &'static str,
    /// `SEXTON_INSTANCE`.
    pub name: String,
    /// Its process id on its host.
    pub pid: u32,
    /// The program's version.
    pub version: &'static str,
    /// Release of the time zone data in a scheduler.
    pub tz_version: Option<&'static str>,
    /// The pools that a worker consumes from.
    pub pools: Vec<String>,
    /// How many tasks it runs at once.
    pub slots: u32,
    /// Number of slots for each of a worker's `pools`, in the same order.
    pub pool_slots: Option<Vec<i32>>,
    /// Identity of the lock file that it holds.
    pub instance_lock: Option<Uuid>,
    /// Maximum number of connections for its own work: `DB_POOL_SIZE` and one more.
    pub db_connections: u32,
}

/// Registers a process or renews its heartbeat. Inserts the row again if a restored backup has lost it, and clears
/// the stop mark if an operator took the process for dead.
pub async fn heartbeat(
    store: &Store,
    who: &InstanceRegistration,
    ready: bool,
    now: Now,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- instance_heartbeat
        INSERT INTO sexton.instances (id, kind, name, pid, version, pools, slots, instance_lock, started_at,
                               heartbeat_at, ready, pool_slots, tz_version, db_connections)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($9, now()), coalesce($9, now()), $10, $11,
                $12, $13)
        ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, ready = excluded.ready,
            instance_lock = excluded.instance_lock, stopped_at = NULL",
        who.id.get(),
        who.kind,
        who.name,
        who.pid as i32,
        who.version,
        &who.pools,
        who.slots as i32,
        who.instance_lock,
        now,
        ready,
        who.pool_slots.as_deref(),
        who.tz_version,
        who.db_connections as i32
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}

/// Proves that the database takes writes: it writes and commits the process's own row. `false`: the row is missing (a
/// restored backup has lost it), so nothing was written.
///
/// # Errors
///
/// [`StoreError::Unavailable`] also for a standby, a read-only server and a full disk, where reads succeed.
pub async fn probe_write(store: &Store, id: ProcessId) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "-- probe_write
        UPDATE sexton.instances SET heartbeat_at = now() WHERE id = $1",
        id.get()
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Marks a process as stopped. Its offers still count for a while, see [`crate::platform::offers::list_recent_schemas`].
pub async fn mark_stopped(store: &Store, id: ProcessId, now: Now) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "-- instance_stopped
        UPDATE sexton.instances SET stopped_at = coalesce($2, now()), ready = false WHERE id = $1",
        id.get(),
        now
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Returns the earlier holders of the instance lock that `me` holds: they are dead. The caller marks them as stopped
/// with [`mark_stopped`] once their attempts are settled.
pub async fn predecessors(
    store: &Store,
    instance_lock: Uuid,
    me: ProcessId,
) -> Result<Vec<ProcessId>, StoreError> {
    let rows = sqlx::query_scalar!(
        "-- instance_predecessors
        SELECT id FROM sexton.instances WHERE instance_lock = $1 AND id <> $2 AND stopped_at IS NULL",
        instance_lock,
        me.get()
    )
    .fetch_all(store.with_timeout())
    .await?;
    Ok(rows.into_iter().map(ProcessId::new).collect())
}

/// A process, as `sexton status` shows it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Instance {
    /// The process.
    pub id: Uuid,
    /// `scheduler` or `worker`.
    pub kind: String,
    /// `SEXTON_INSTANCE`.
    pub name: String,
    /// Its process id on its host.
    pub pid: i32,
    /// The program's version.
    pub version: String,
    /// Release of the time zone data in a scheduler.
    pub tz_version: Option<String>,
    /// The pools that a worker consumes from.
    pub pools: Vec<String>,
    /// How many tasks it runs at once.
    pub slots: i32,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// When its last heartbeat came.
    pub heartbeat_at: DateTime<Utc>,
    /// Its `/readyz` answer at that heartbeat.
    pub ready: bool,
    /// Number of its open attempts.
    pub running: i64,
    /// Milliseconds since the last heartbeat, by the database's clock.
    pub silent_ms: i64,
}

/// Returns the processes that have not stopped and sent a heartbeat within the last day, newest first; at most 1,000.
pub async fn list(store: &Store, now: Now) -> Result<Vec<Instance>, StoreError> {
    Ok(sqlx::query_as!(
        Instance,
        r#"-- list_instances
        SELECT id, kind, name, pid, version, tz_version, pools, slots, started_at, heartbeat_at, ready,
               (SELECT count(*) FROM sexton.executions e
                WHERE e.state = 'running' AND e.worker_id = i.id) AS "running!",
               (extract(epoch FROM coalesce($1, now()) - heartbeat_at) * 1000)::bigint AS "silent_ms!"
        FROM sexton.instances i
        WHERE stopped_at IS NULL AND heartbeat_at > coalesce($1, now()) - interval '1 day'
        ORDER BY kind, name, started_at DESC LIMIT 1000"#,
        now
    )
    .fetch_all(store.with_timeout())
    .await?)
}
