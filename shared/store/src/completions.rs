//! Candidates for the completion of a command line: names and ids that begin with what was typed.
//!
//! Executions and failures are read by the index of their ids, and no more than `limit` of them; of the other tables,
//! which are small, a statement may read all rows.

use uuid::Uuid;

use crate::{Store, StoreError};

/// A name or id, and a few words about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The text that completes the word.
    pub value: String,
    /// What it stands for.
    pub about: Option<String>,
}

/// Completes a job's name: by name, without deleted jobs.
pub async fn jobs(store: &Store, prefix: &str, limit: i64) -> Result<Vec<Candidate>, StoreError> {
    Ok(sqlx::query_as!(
        Candidate,
        r#"-- complete_jobs
        SELECT name AS value, task_type || CASE status WHEN 'paused' THEN ', paused' ELSE '' END AS about
        FROM sexton.jobs WHERE deleted_at IS NULL AND starts_with(name, $1) ORDER BY name LIMIT $2"#,
        prefix,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Completes an execution's id: from the first to the last id, newest first.
pub async fn executions(
    store: &Store,
    (first, last): (Uuid, Uuid),
    limit: i64,
) -> Result<Vec<Candidate>, StoreError> {
    Ok(sqlx::query_as!(
        Candidate,
        r#"-- complete_executions
        SELECT e.id::text AS "value!", j.name || ', ' || e.state AS about
        FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
        WHERE e.id >= $1 AND e.id <= $2 ORDER BY e.id DESC LIMIT $3"#,
        first,
        last,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Completes the id of a failed execution, or of a discarded one: the newest execution first.
pub async fn failures(
    store: &Store,
    discarded: bool,
    (first, last): (Uuid, Uuid),
    limit: i64,
) -> Result<Vec<Candidate>, StoreError> {
    Ok(sqlx::query_as!(
        Candidate,
        r#"-- complete_failures
        SELECT f.execution_id::text AS "value!", j.name || coalesce(', ' || f.error_class, '') AS about
        FROM sexton.failures f JOIN sexton.jobs j ON j.id = f.job_id
        WHERE f.discarded = $1 AND f.execution_id >= $2 AND f.execution_id <= $3
        ORDER BY f.execution_id DESC LIMIT $4"#,
        discarded,
        first,
        last,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Completes a failure group's fingerprint: the last failure first.
pub async fn groups(store: &Store, prefix: &str, limit: i64) -> Result<Vec<Candidate>, StoreError> {
    Ok(sqlx::query_as!(
        Candidate,
        r#"-- complete_groups
        SELECT fingerprint AS value, concat_ws(': ', error_class, left(pattern, 60)) AS about
        FROM sexton.failure_groups WHERE starts_with(fingerprint, $1)
        ORDER BY last_seen DESC NULLS LAST, fingerprint LIMIT $2"#,
        prefix,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Completes a bulk's number: the newest first.
pub async fn bulks(store: &Store, prefix: &str, limit: i64) -> Result<Vec<Candidate>, StoreError> {
    Ok(sqlx::query_as!(
        Candidate,
        r#"-- complete_bulks
        SELECT id::text AS "value!", kind || ', ' || state AS about
        FROM sexton.bulks WHERE starts_with(id::text, $1) ORDER BY id DESC LIMIT $2"#,
        prefix,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Completes an unknown message's id: by id.
pub async fn unknown_messages(
    store: &Store,
    prefix: &str,
    limit: i64,
) -> Result<Vec<Candidate>, StoreError> {
    Ok(sqlx::query_as!(
        Candidate,
        r#"-- complete_unknown_messages
        SELECT encode(digest, 'hex') AS "value!", kind || ', ' || body_bytes || ' bytes' AS about
        FROM sexton.unknown_messages WHERE starts_with(encode(digest, 'hex'), $1) ORDER BY digest LIMIT $2"#,
        prefix,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Completes a pool's name: the pools of jobs and of workers that have not stopped, by name.
pub async fn pools(store: &Store, prefix: &str, limit: i64) -> Result<Vec<Candidate>, StoreError> {
    Ok(sqlx::query_as!(
        Candidate,
        r#"-- complete_pools
        SELECT p.pool AS "value!", NULL AS about FROM (
            SELECT pool FROM sexton.jobs WHERE deleted_at IS NULL
            UNION SELECT unnest(pools) FROM sexton.instances WHERE stopped_at IS NULL) p
        WHERE starts_with(p.pool, $1) ORDER BY p.pool LIMIT $2"#,
        prefix,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Completes a worker's name: of those that have not stopped and sent a heartbeat within the last day, by name.
pub async fn workers(
    store: &Store,
    prefix: &str,
    limit: i64,
) -> Result<Vec<Candidate>, StoreError> {
    Ok(sqlx::query_as!(
        Candidate,
        r#"-- complete_workers
        SELECT name AS value, 'pools ' || array_to_string(min(pools), ', ') AS about
        FROM sexton.instances
        WHERE kind = 'worker' AND stopped_at IS NULL AND heartbeat_at > now() - interval '1 day'
          AND starts_with(name, $1)
        GROUP BY name ORDER BY name LIMIT $2"#,
        prefix,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Completes a lock row's name: those that are locked first, by name.
pub async fn lock_rows(
    store: &Store,
    prefix: &str,
    limit: i64,
) -> Result<Vec<Candidate>, StoreError> {
    Ok(sqlx::query_as!(
        Candidate,
        r#"-- complete_lock_rows
        SELECT name::text AS "value!",
               CASE WHEN lock_until > timezone('utc', now()) THEN 'held by ' || locked_by ELSE 'free' END AS about
        FROM sexton.lock_rows WHERE starts_with(name, $1)
        ORDER BY lock_until > timezone('utc', now()) DESC, name LIMIT $2"#,
        prefix,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}
