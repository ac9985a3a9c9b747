//! The state of the whole platform, for `sexton status`.
//!
//! Counts come from the partial indexes of active rows, so they stay fast among millions of finished rows. They are
//! read one after the other: each is exact, together they are no snapshot.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{Now, Store, StoreError, parked_messages};

/// The waiting and running executions of one pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PoolCounts {
    /// The pool's name.
    pub pool: String,
    /// Claimed or requeued, not yet opened.
    pub pending: i64,
    /// Claimed or requeued, waiting until their job is free.
    pub waiting: i64,
    /// With an open attempt.
    pub running: i64,
    /// Waiting for their next attempt.
    pub retrying: i64,
    /// Milliseconds for which the oldest waiting execution has been due; `None`: nothing is due.
    pub oldest_due_ms: Option<i64>,
    /// Slots for this pool of the workers with a heartbeat within the last minute.
    pub slots: i64,
    /// Number of these workers.
    pub workers: i64,
    /// Number of active jobs in this pool.
    pub jobs: i64,
}

/// Counts over the whole platform.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Overview {
    /// The database's clock.
    pub now: DateTime<Utc>,
    /// The number of the last migration.
    pub schema_version: Option<i64>,
    /// Number of active jobs.
    pub jobs_active: i64,
    /// Number of paused jobs.
    pub jobs_paused: i64,
    /// When the next job is due.
    pub next_fire_at: Option<DateTime<Utc>>,
    /// Failed executions, which wait for an operator.
    pub failed: i64,
    /// When the oldest of them was parked.
    pub oldest_failed_at: Option<DateTime<Utc>>,
    /// Unpublished tickets, except waiters'.
    pub unpublished: i64,
    /// Milliseconds for which the oldest of them has been due.
    pub oldest_unpublished_ms: Option<i64>,
}

/// The unpublished tickets, except waiters'.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unpublished {
    /// Their number.
    pub tickets: i64,
    /// Milliseconds for which the oldest of them has been due.
    pub oldest_ms: Option<i64>,
}

/// Executions that were due within a time, among those that were claimed or enqueued last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DueExecutions {
    /// Their number.
    pub due: i64,
    /// How many of them have succeeded.
    pub succeeded: i64,
    /// Whether more were claimed or enqueued within that time than were looked at.
    pub is_cut_short: bool,
}

/// Returns the database's time.
pub async fn clock(store: &Store) -> Result<DateTime<Utc>, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- clock
        SELECT clock_timestamp() AS "now!""#
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Returns the number of the last migration; `None` before the first. The schema must exist.
pub async fn schema_version(store: &Store) -> Result<Option<i64>, StoreError> {
    // Not checked at compile time: the table belongs to the migrator.
    Ok(sqlx::query_scalar("SELECT max(version) FROM sexton._sqlx_migrations WHERE success")
        .fetch_one(store.with_timeout())
        .await?)
}

/// Reads the counts over the whole platform.
pub async fn overview(store: &Store, now: Now) -> Result<Overview, StoreError> {
    let schema_version = schema_version(store).await?;
    let parked_messages::FailedCounts { failed, .. } = parked_messages::count_failed(store).await?;
    let unpublished = read_unpublished(store, now).await?;
    let row = sqlx::query!(
        r#"-- overview
        SELECT coalesce($1, clock_timestamp()) AS "now!",
               j.active AS "active!", j.paused AS "paused!", j.next_fire_at,
               f.oldest AS oldest_failed_at
        FROM (SELECT count(*) FILTER (WHERE status = 'active') AS active,
                     count(*) FILTER (WHERE status = 'paused') AS paused,
                     min(next_fire_at) FILTER (WHERE status = 'active') AS next_fire_at
              FROM sexton.jobs WHERE deleted_at IS NULL) j,
             (SELECT min(finished_at) AS oldest FROM sexton.executions WHERE state = 'failed') f"#,
        now
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok(Overview {
        now: row.now,
        schema_version,
        jobs_active: row.active,
        jobs_paused: row.paused,
        next_fire_at: row.next_fire_at,
        failed: failed as i64,
        oldest_failed_at: row.oldest_failed_at,
        unpublished: unpublished.tickets,
        oldest_unpublished_ms: unpublished.oldest_ms,
    })
}

/// Reads the number and the age of the unpublished tickets.
pub async fn read_unpublished(store: &Store, now: Now) -> Result<Unpublished, StoreError> {
    Ok(sqlx::query_as!(
        Unpublished,
        r#"-- unpublished_tickets
        SELECT o.tickets AS "tickets!",
               CASE WHEN o.oldest IS NOT NULL THEN
                   greatest(0, extract(epoch FROM coalesce($1, clock_timestamp()) - o.oldest) * 1000)::bigint
               END AS oldest_ms
        FROM (SELECT count(*) AS tickets,
                     min(coalesce(finished_at, CASE WHEN state = 'retrying' THEN started_at END,
                                  next_attempt_at)) AS oldest
              FROM sexton.executions WHERE ticket_published_at IS NULL
                AND state IN ('pending', 'retrying', 'failed')
                -- A waiter's ticket is published after its admission, what is enqueued for later when it is due.
                AND NOT (state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL
                         AND relay_after > coalesce($1, statement_timestamp()))) o"#,
        now
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Counts the executions that failed within the last `seconds` and are still failed.
pub async fn failed_since(store: &Store, seconds: i64, now: Now) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- failed_since
        SELECT count(*) AS "failed!" FROM sexton.executions
        WHERE state = 'failed' AND finished_at > coalesce($2, now()) - $1 * interval '1 second'"#,
        seconds as f64,
        now
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Counts the executions with a nominal time within the last `seconds`, among the last `most_walked` that were claimed or enqueued.
/// Like a list of all executions it walks along the primary key, whose order is that of the claims, and of what is enqueued for later that
/// of the enqueues.
pub async fn due_since(
    store: &Store,
    seconds: i64,
    most_walked: i64,
    now: Now,
) -> Result<DueExecutions, StoreError> {
    Ok(sqlx::query_file_as!(
        DueExecutions,
        "src/platform/due_since.sql",
        seconds as f64,
        most_walked,
        now
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Reads the counts of each pool that has jobs, workers or work, by name; at most 1,000.
pub async fn pools(store: &Store, now: Now) -> Result<Vec<PoolCounts>, StoreError> {
    Ok(sqlx::query_as!(
        PoolCounts,
        r#"-- pool_counts
        WITH w AS (
            SELECT pool, count(*) FILTER (WHERE state = 'pending' AND NOT waits) AS pending,
                   count(*) FILTER (WHERE state = 'retrying') AS retrying,
                   count(*) FILTER (WHERE waits) AS waiting,
                   min(next_attempt_at) FILTER (WHERE NOT waits) AS oldest
            FROM (SELECT pool, state, next_attempt_at,
                         state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL
                             AND relay_after > coalesce($1, now()) AS waits
                  FROM sexton.executions
                  WHERE state IN ('pending', 'retrying')
                    -- What is enqueued for later needs no worker yet.
                    AND NOT (state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL
                             AND next_attempt_at > coalesce($1, now()))) e
            GROUP BY pool),
        r AS (
            SELECT pool, count(*) AS running FROM sexton.executions WHERE state = 'running' GROUP BY pool),
        i AS (
            -- Workers of the version before do not say how many slots they have for which pool.
            SELECT s.pool, sum(coalesce(s.slots, i.slots)) AS slots, count(*) AS workers
            FROM sexton.instances i, unnest(i.pools, i.pool_slots) AS s (pool, slots)
            WHERE i.stopped_at IS NULL
              AND i.heartbeat_at > coalesce($1, now()) - interval '1 minute'
            GROUP BY s.pool),
        j AS (
            -- A question goes to the pool of what it asks about, whatever its job says.
            SELECT pool, count(*) FILTER (WHERE status = 'active') AS jobs FROM sexton.jobs
            WHERE deleted_at IS NULL AND name NOT LIKE 'verify.%' GROUP BY pool),
        p AS (
            SELECT 'default' AS pool UNION SELECT pool FROM j UNION SELECT pool FROM w
            UNION SELECT pool FROM r UNION SELECT pool FROM i)
        SELECT p.pool AS "pool!", coalesce(w.pending, 0) AS "pending!",
               coalesce(w.waiting, 0) AS "waiting!",
               coalesce(r.running, 0) AS "running!", coalesce(w.retrying, 0) AS "retrying!",
               CASE WHEN w.oldest <= coalesce($1, now())
                    THEN (extract(epoch FROM coalesce($1, now()) - w.oldest) * 1000)::bigint
               END AS oldest_due_ms,
               coalesce(i.slots, 0)::bigint AS "slots!", coalesce(i.workers, 0) AS "workers!",
               coalesce(j.jobs, 0) AS "jobs!"
        FROM p LEFT JOIN w USING (pool) LEFT JOIN r USING (pool) LEFT JOIN i USING (pool)
            LEFT JOIN j USING (pool)
        ORDER BY p.pool LIMIT 1000"#,
        now
    )
    .fetch_all(store.with_timeout())
    .await?)
}
