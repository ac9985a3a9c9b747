//! Advisory locks, as the server lists them, with what the platform knows of their sessions.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use super::purpose::{PLATFORM_CLASS, purpose};
use super::{Found, LockAttempt, LockFilter, LockJobs, LockKey};
use crate::platform_keys::PlatformKeys;
use crate::{Store, StoreError};

/// An advisory lock of this database that a session holds or waits for.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AdvisoryLock {
    /// Its key.
    pub key: LockKey,
    /// What Sexton itself locks it for; `None`: it is a job's, a service's or another program's.
    pub purpose: Option<&'static str>,
    /// Whether others may hold it at the same time in this way.
    pub is_shared: bool,
    /// Whether the session holds it; otherwise it waits.
    pub is_held: bool,
    /// Since when; `None`: the session is another role's, and nothing else tells.
    pub since: Option<Since>,
    /// The session; `None`: a prepared transaction, which has none.
    pub session: Option<LockSession>,
    /// The jobs with this key.
    pub jobs: LockJobs,
    /// The running attempt for which a worker's session holds it.
    pub attempt: Option<LockAttempt>,
    /// The tick that the session took with it and has not ended.
    pub tick: Option<DateTime<Utc>>,
    /// Number of executions that wait for it in delay queues.
    pub executions_waiting: i64,
}

/// A session of the server. PostgreSQL hides most of another role's session from everybody who is no member of
/// `pg_read_all_stats`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockSession {
    /// The process id of its backend.
    pub pid: i32,
    /// The role that logged in.
    pub login: Option<String>,
    /// `application_name`.
    pub application: String,
    /// The worker whose session for locks it is, by that name.
    pub worker: Option<String>,
    /// Its client's address; `None`: a local socket, or hidden.
    pub client_address: Option<String>,
    /// As `pg_stat_activity` has it: `active`, `idle`, `idle in transaction`, …; `None`: hidden.
    pub state: Option<String>,
    /// Since when it does nothing; `None`: it runs a statement, or hidden.
    pub idle_since: Option<DateTime<Utc>>,
    /// Its running or last statement, the first 200 characters; `None`: hidden.
    pub query: Option<String>,
}

/// Since when a lock is held, or a session waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Since {
    /// The instant.
    pub at: DateTime<Utc>,
    /// What it is the instant of.
    pub basis: SinceBasis,
}

/// What an instant is known from. PostgreSQL records when a wait began, and not when a lock was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SinceBasis {
    /// The wait began then.
    Wait,
    /// The statement that waits began then.
    Statement,
    /// The session took the tick then, with the lock.
    Tick,
    /// The attempt was opened then, shortly before it took the lock.
    Attempt,
    /// The session's transaction began then: a lock of the transaction is younger, one of the session may be older.
    Transaction,
    /// The session began then: the lock is younger.
    Session,
}

/// A lock as it is read.
struct AdvisoryRow {
    key: Option<i64>,
    class: Option<i32>,
    object: Option<i32>,
    mode: String,
    granted: bool,
    waits_since: Option<DateTime<Utc>>,
    total: i64,
    pid: Option<i32>,
    login: Option<String>,
    application: Option<String>,
    client_address: Option<String>,
    backend_start: Option<DateTime<Utc>>,
    xact_start: Option<DateTime<Utc>>,
    query_start: Option<DateTime<Utc>>,
    state_change: Option<DateTime<Utc>>,
    state: Option<String>,
    query: Option<String>,
    session_worker: Option<String>,
    jobs: Option<Vec<String>>,
    job_count: Option<i32>,
    timeout_ms: Option<i64>,
    tick: Option<DateTime<Utc>>,
    tick_began_at: Option<DateTime<Utc>>,
    execution_id: Option<Uuid>,
    attempt: Option<i32>,
    job: Option<String>,
    job_timeout_ms: Option<i64>,
    opened_at: Option<DateTime<Utc>>,
    lease_until: Option<DateTime<Utc>>,
    silent_ms: Option<i64>,
    executions_waiting: i64,
}

/// Lists advisory locks of this database by key, holders before those that wait; at most `limit`.
///
/// A worker holds the keys of its jobs in one session, which its `application_name` shows. A service's session is known by
/// the tick that it has taken.
pub async fn list_advisory(
    store: &Store,
    filter: &LockFilter,
    limit: i64,
) -> Result<Found<AdvisoryLock>, StoreError> {
    let platform = PlatformKeys::read(store.with_timeout()).await?;
    let platform_keys = platform.numbers();
    let (number, pair) = match filter.key {
        None => (None, None),
        Some(LockKey::Number(number)) => (Some(number), None),
        Some(LockKey::Pair(class, object)) => (None, Some((class, object))),
    };
    let rows = sqlx::query_as!(
        AdvisoryRow,
        r#"-- list_advisory_locks
        WITH k AS (
            SELECT CASE WHEN objsubid = 1 THEN classid::bigint << 32 | objid::bigint END AS key,
                   CASE WHEN objsubid = 2 THEN classid::int END AS class,
                   CASE WHEN objsubid = 2 THEN objid::int END AS object,
                   mode, granted, pid,
                   -- PostgreSQL 13 has no such column.
                   (to_jsonb(l) ->> 'waitstart')::timestamptz AS waits_since,
                   bool_or(NOT granted) OVER (PARTITION BY classid, objid, objsubid) AS contended
            FROM pg_locks l
            WHERE locktype = 'advisory'
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())),
        j AS (
            SELECT lock_key, array_agg(name ORDER BY name) FILTER (WHERE deleted_at IS NULL) AS names,
                   array_agg(id) AS ids, max(timeout_ms) FILTER (WHERE deleted_at IS NULL) AS timeout_ms
            FROM sexton.jobs WHERE lock_key IS NOT NULL GROUP BY lock_key),
        f AS (
            SELECT k.*, j.names, j.ids, j.timeout_ms, a.usename, a.application_name, a.client_addr, a.backend_start,
                   a.xact_start, a.query_start, a.state_change, a.state, a.query, count(*) OVER () AS total
            FROM k LEFT JOIN j ON j.lock_key = k.key LEFT JOIN pg_stat_activity a ON a.pid = k.pid
            WHERE ($1 OR NOT coalesce(k.key = ANY ($2) OR k.class = $3, false))
              AND ($4::bigint IS NULL OR k.key = $4)
              AND ($5::int IS NULL OR (k.class = $5 AND k.object = $6))
              AND ($7::text IS NULL OR starts_with(a.application_name, $7)
                   OR EXISTS (SELECT FROM unnest(j.names) AS n (name) WHERE starts_with(n.name, $7)))
              AND (NOT $8 OR k.contended) AND (NOT $9 OR j.names IS NOT NULL)
            ORDER BY k.key, k.class, k.object, k.granted DESC, k.waits_since, k.pid LIMIT $10)
        SELECT f.key, f.class, f.object, f.mode AS "mode!", f.granted AS "granted!", f.waits_since,
               f.total AS "total!", f.pid, f.usename::text AS login, f.application_name AS application,
               host(f.client_addr) AS client_address, f.backend_start, f.xact_start, f.query_start, f.state_change,
               f.state, left(nullif(f.query, '<insufficient privilege>'), 200) AS query,
               w.name AS "session_worker?", f.names[:10] AS jobs, cardinality(f.names) AS job_count, f.timeout_ms,
               t.tick AS "tick?", t.began_at AS "tick_began_at?", e.id AS "execution_id?", e.attempt AS "attempt?",
               e.job AS "job?", e.timeout_ms AS "job_timeout_ms?", e.opened_at AS "opened_at?",
               e.lease_until AS "lease_until?", e.silent_ms AS "silent_ms?",
               (SELECT count(*) FROM sexton.executions x
                WHERE x.job_id = ANY (f.ids) AND x.state = 'retrying' AND x.outcome = 'locked')
                   AS "executions_waiting!"
        FROM f
        LEFT JOIN LATERAL (
            -- The server cuts names after 63 bytes.
            SELECT i.name FROM sexton.instances i
            WHERE i.kind = 'worker' AND left('sexton worker ' || i.name || ' locks', 63) = f.application_name
            ORDER BY i.started_at DESC LIMIT 1) w ON true
        LEFT JOIN LATERAL (
            -- One that began before this session was another's, with the same process id.
            SELECT g.tick, g.began_at
            FROM (SELECT n.* FROM sexton.guard_ticks n WHERE n.key = f.key ORDER BY n.tick DESC LIMIT 1000) g
            WHERE f.granted AND g.backend = f.pid AND g.finished_at IS NULL
              AND (f.backend_start IS NULL OR g.began_at >= f.backend_start)
            ORDER BY g.began_at DESC LIMIT 1) t ON true
        LEFT JOIN LATERAL (
            SELECT x.id, x.attempt, coalesce(o.deleted_name, o.name) AS job, o.timeout_ms,
                   coalesce(x.started_at, x.claimed_at) AS opened_at, x.lease_until,
                   (extract(epoch FROM clock_timestamp() - i.heartbeat_at) * 1000)::bigint AS silent_ms
            FROM sexton.executions x
            JOIN sexton.instances i ON i.id = x.worker_id JOIN sexton.jobs o ON o.id = x.job_id
            WHERE f.granted AND i.name = w.name AND x.job_id = ANY (f.ids) AND x.state = 'running'
            ORDER BY x.started_at LIMIT 1) e ON true
        ORDER BY f.key, f.class, f.object, f.granted DESC, f.waits_since, f.pid"#,
        filter.all || filter.key.is_some(),
        &platform_keys[..],
        PLATFORM_CLASS,
        number,
        pair.map(|(class, _)| class),
        pair.map(|(_, object)| object),
        filter.service,
        filter.waiting,
        filter.of_jobs,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?;
    let more = rows.first().map_or(0, |row| row.total) - rows.len() as i64;
    Ok(Found { items: rows.into_iter().filter_map(|row| row.lock(platform)).collect(), more })
}

impl AdvisoryRow {
    fn lock(mut self, platform: PlatformKeys) -> Option<AdvisoryLock> {
        let pair = self.class.zip(self.object).map(|(class, object)| LockKey::Pair(class, object));
        // The server knows no third form.
        let key = self.key.map(LockKey::Number).or(pair)?;
        let attempt = self.take_attempt();
        Some(AdvisoryLock {
            key,
            purpose: purpose(platform, key),
            is_shared: self.mode == "ShareLock",
            is_held: self.granted,
            since: self.since(attempt.as_ref()),
            tick: self.tick,
            executions_waiting: self.executions_waiting,
            jobs: LockJobs {
                names: self.jobs.take().unwrap_or_default(),
                count: self.job_count.unwrap_or(0).into(),
                timeout_ms: self.timeout_ms,
            },
            attempt,
            session: self.session(),
        })
    }

    fn take_attempt(&mut self) -> Option<LockAttempt> {
        Some(LockAttempt {
            execution_id: self.execution_id?,
            attempt: self.attempt?,
            job: self.job.take()?,
            timeout_ms: self.job_timeout_ms?,
            worker: self.session_worker.clone()?,
            silent_ms: self.silent_ms?,
            opened_at: self.opened_at?,
            lease_until: self.lease_until,
            finished_at: None,
            outcome: None,
        })
    }

    fn since(&self, attempt: Option<&LockAttempt>) -> Option<Since> {
        let since = |basis, at: Option<DateTime<Utc>>| at.map(|at| Since { at, basis });
        if !self.granted {
            return since(SinceBasis::Wait, self.waits_since)
                .or_else(|| since(SinceBasis::Statement, self.query_start));
        }
        since(SinceBasis::Tick, self.tick_began_at)
            .or_else(|| since(SinceBasis::Attempt, attempt.map(|attempt| attempt.opened_at)))
            .or_else(|| since(SinceBasis::Transaction, self.xact_start))
            .or_else(|| since(SinceBasis::Session, self.backend_start))
    }

    fn session(self) -> Option<LockSession> {
        let is_idle = self.state.as_deref().is_some_and(|state| state.starts_with("idle"));
        Some(LockSession {
            pid: self.pid?,
            login: self.login,
            application: self.application.unwrap_or_default(),
            worker: self.session_worker,
            client_address: self.client_address,
            idle_since: self.state_change.filter(|_| is_idle),
            state: self.state,
            query: self.query,
        })
    }
}
