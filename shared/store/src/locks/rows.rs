//! The rows of `lock_rows`, with what the platform knows of their holders.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Found, LockAttempt, LockFilter, LockJobs};
use crate::{Store, StoreError};

/// A lock that is a row.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockRow {
    /// What it protects.
    pub name: String,
    /// Whether somebody holds it.
    pub state: RowState,
    /// The process that holds or last held it: `host:pid:uuid` of a worker, a host's name of ShedLock.
    pub locked_by: String,
    /// Since when, as that process wrote it.
    pub locked_at: DateTime<Utc>,
    /// Until when it is locked, unless the holder extends or releases it.
    pub lock_until: DateTime<Utc>,
    /// The jobs with this row.
    pub jobs: LockJobs,
    /// The attempt that took it, also if it has ended and left the row locked; `None`: no worker's, as far as can be
    /// seen.
    pub attempt: Option<LockAttempt>,
    /// Number of executions that wait for it in delay queues.
    pub executions_waiting: i64,
}

/// Whether a row is locked, and why still.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RowState {
    /// It is locked, and its holder may be at work.
    Held,
    /// Its holder is done; it stays locked for the `at_least` of its job.
    AtLeast,
    /// Its time is over: the next process that comes takes it.
    Free,
}

impl RowState {
    /// Judges a row by the database's clock. A holder that is done has set the end to the minimum of its job.
    fn of(row: &RowOfLock) -> Self {
        let is_running = row.outcome.is_none() && row.execution_id.is_some();
        let at_least = row.at_least_ms.and_then(TimeDelta::try_milliseconds);
        let minimum = at_least.and_then(|at_least| row.locked_at.checked_add_signed(at_least));
        if row.lock_until <= row.now {
            Self::Free
        } else if !is_running && minimum.is_some_and(|minimum| row.lock_until <= minimum) {
            Self::AtLeast
        } else {
            Self::Held
        }
    }
}

/// A row as it is read.
struct RowOfLock {
    name: String,
    locked_by: String,
    locked_at: DateTime<Utc>,
    lock_until: DateTime<Utc>,
    now: DateTime<Utc>,
    total: i64,
    jobs: Option<Vec<String>>,
    job_count: Option<i32>,
    timeout_ms: Option<i64>,
    at_least_ms: Option<i64>,
    execution_id: Option<Uuid>,
    attempt: Option<i32>,
    job: Option<String>,
    job_timeout_ms: Option<i64>,
    opened_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
    outcome: Option<String>,
    lease_until: Option<DateTime<Utc>>,
    worker: Option<String>,
    silent_ms: Option<i64>,
    executions_waiting: i64,
}

/// Lists lock rows by name, those that are free last; at most `limit`. [`LockFilter::waiting`] and [`LockFilter::key`]
/// match none: in the database nobody waits for a row.
pub async fn list_rows(
    store: &Store,
    filter: &LockFilter,
    limit: i64,
) -> Result<Found<LockRow>, StoreError> {
    if filter.waiting || filter.key.is_some() {
        return Ok(Found { items: Vec::new(), more: 0 });
    }
    let rows = read(store.with_timeout(), filter, limit).await?;
    let more = rows.first().map_or(0, |row| row.total) - rows.len() as i64;
    Ok(Found { items: rows.into_iter().map(RowOfLock::lock).collect(), more })
}

/// Returns the row of a name, also if it is free.
pub async fn find_row(store: &Store, name: &str) -> Result<Option<LockRow>, StoreError> {
    read_row(store.with_timeout(), name).await
}

/// As [`find_row`], over a connection.
pub(super) async fn read_row(
    executor: impl PgExecutor<'_>,
    name: &str,
) -> Result<Option<LockRow>, StoreError> {
    let filter = LockFilter { row: Some(name.to_owned()), ..LockFilter::default() };
    Ok(read(executor, &filter, 1).await?.pop().map(RowOfLock::lock))
}

/// Reads rows. The attempt that took one was open when it was locked, did not find it locked, and was a worker's with the
/// process id that the row names.
async fn read(
    executor: impl PgExecutor<'_>,
    filter: &LockFilter,
    limit: i64,
) -> Result<Vec<RowOfLock>, StoreError> {
    Ok(sqlx::query_as!(
        RowOfLock,
        r#"-- list_lock_rows
        WITH j AS (
            SELECT lock_row, array_agg(name ORDER BY name) FILTER (WHERE deleted_at IS NULL) AS names,
                   array_agg(id) AS ids, max(timeout_ms) FILTER (WHERE deleted_at IS NULL) AS timeout_ms,
                   max(lock_at_least_ms) FILTER (WHERE deleted_at IS NULL) AS at_least_ms
            FROM sexton.jobs WHERE lock_row IS NOT NULL GROUP BY lock_row),
        f AS (
            -- Other programs write these columns, and may write infinity.
            SELECT r.name, r.locked_by, c.now,
                   greatest(least(r.locked_at, '9999-12-31'), '0001-01-01') AT TIME ZONE 'UTC' AS locked_at,
                   greatest(least(r.lock_until, '9999-12-31'), '0001-01-01') AT TIME ZONE 'UTC' AS lock_until,
                   substring(r.locked_by FROM ':([0-9]{1,9}):[^:]*$')::int AS pid,
                   j.names, j.ids, j.timeout_ms, j.at_least_ms, count(*) OVER () AS total
            FROM (SELECT clock_timestamp() AS now) c, sexton.lock_rows r LEFT JOIN j ON j.lock_row = r.name
            WHERE ($1::text IS NULL OR r.name = $1)
              AND ($2::text IS NULL OR starts_with(r.name, $2) OR starts_with(r.locked_by, $2)
                   OR EXISTS (SELECT FROM unnest(j.names) AS n (name) WHERE starts_with(n.name, $2)))
              AND ($3 OR r.lock_until > timezone('utc', c.now)) AND (NOT $4 OR j.names IS NOT NULL)
            ORDER BY r.lock_until > timezone('utc', c.now) DESC, r.name LIMIT $5)
        SELECT f.name AS "name!", f.locked_by AS "locked_by!", f.locked_at AS "locked_at!",
               f.lock_until AS "lock_until!", f.now AS "now!", f.total AS "total!",
               f.names[:10] AS jobs, cardinality(f.names) AS job_count, f.timeout_ms, f.at_least_ms,
               e.execution_id AS "execution_id?", e.number AS "attempt?", e.job AS "job?",
               e.timeout_ms AS "job_timeout_ms?", e.opened_at AS "opened_at?", e.finished_at AS "finished_at?",
               e.outcome AS "outcome?", e.lease_until AS "lease_until?", e.worker AS "worker?",
               e.silent_ms AS "silent_ms?",
               (SELECT count(*) FROM sexton.executions x
                WHERE x.job_id = ANY (f.ids) AND x.state = 'retrying' AND x.outcome = 'locked')
                   AS "executions_waiting!"
        FROM f
        LEFT JOIN LATERAL (
            SELECT a.execution_id, a.number, coalesce(o.deleted_name, o.name) AS job, o.timeout_ms, a.opened_at,
                   a.finished_at, a.outcome, x.lease_until, i.name AS worker,
                   (extract(epoch FROM f.now - i.heartbeat_at) * 1000)::bigint AS silent_ms
            FROM unnest(f.ids) AS u (id)
            JOIN sexton.jobs o ON o.id = u.id
            CROSS JOIN LATERAL (
                SELECT s.id, s.lease_until FROM sexton.executions s WHERE s.job_id = u.id AND s.state = 'running'
                UNION
                SELECT n.id, n.lease_until
                FROM (SELECT l.id, l.lease_until FROM sexton.executions l WHERE l.job_id = u.id
                      ORDER BY l.claimed_at DESC LIMIT 100) n) x
            JOIN sexton.all_attempts a ON a.execution_id = x.id
            JOIN sexton.instances i ON i.id = a.worker_id
            WHERE f.lock_until > f.now AND a.opened_at <= f.locked_at
              AND coalesce(a.finished_at, 'infinity') >= f.locked_at
              AND a.outcome IS DISTINCT FROM 'locked' AND i.pid = f.pid
            ORDER BY a.outcome IS NULL DESC, a.opened_at DESC LIMIT 1) e ON true
        ORDER BY f.lock_until > f.now DESC, f.name"#,
        filter.row,
        filter.service,
        filter.all || filter.row.is_some(),
        filter.of_jobs,
        limit
    )
    .fetch_all(executor)
    .await?)
}

impl RowOfLock {
    fn lock(mut self) -> LockRow {
        let state = RowState::of(&self);
        let attempt = self.take_attempt();
        LockRow {
            name: self.name,
            state,
            locked_by: self.locked_by,
            locked_at: self.locked_at,
            lock_until: self.lock_until,
            jobs: LockJobs {
                names: self.jobs.unwrap_or_default(),
                count: self.job_count.unwrap_or(0).into(),
                timeout_ms: self.timeout_ms,
            },
            attempt,
            executions_waiting: self.executions_waiting,
        }
    }

    fn take_attempt(&mut self) -> Option<LockAttempt> {
        Some(LockAttempt {
            execution_id: self.execution_id?,
            attempt: self.attempt?,
            job: self.job.take()?,
            timeout_ms: self.job_timeout_ms?,
            worker: self.worker.take()?,
            silent_ms: self.silent_ms?,
            opened_at: self.opened_at?,
            lease_until: self.lease_until.filter(|_| self.finished_at.is_none()),
            finished_at: self.finished_at,
            outcome: self.outcome.take(),
        })
    }
}
