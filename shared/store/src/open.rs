//! Open: turn tickets into running attempts.
//!
//! One statement for a batch of tickets of distinct executions. It changes exactly the rows whose
//! attempt number is the ticket's, that have a ticket and are due, and inserts their attempt rows;
//! both or neither. Whether a ticket won is told by its token, so that an answer that was lost on
//! the way can be asked for again. A crash after the statement leaves a running attempt without a
//! worker: its lease runs out and the rescuer ends it as lost.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::id::{AttemptNumber, ExecutionId, OpenToken, ProcessId};
use sexton_model::job::RetryOverrides;
use sexton_model::open::Row;
use sexton_model::retry::Used;
use sexton_model::state::State;
use uuid::Uuid;

use crate::error::known;
use crate::{Now, Store, StoreError};

/// A ticket that asks to be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenRequest {
    /// The execution.
    pub execution_id: ExecutionId,
    /// The ticket's number.
    pub attempt: AttemptNumber,
    /// Drawn for this request; the same when it is asked again.
    pub token: OpenToken,
}

/// An open attempt: what to run, and by which policies.
#[derive(Clone, PartialEq, Debug)]
pub struct Opened {
    /// The execution.
    pub execution_id: ExecutionId,
    /// The attempt's number.
    pub attempt: AttemptNumber,
    /// The worker's mark on it.
    pub token: OpenToken,
    /// The job's name.
    pub job: String,
    /// Selects the catalogue's entry.
    pub task_type: String,
    /// Handed to the task.
    pub target: Option<String>,
    /// Handed to the task.
    pub params: Value,
    /// Handed to the task.
    pub execution_key: String,
    /// Handed to the task.
    pub idempotency_key: String,
    /// Handed to the task.
    pub scheduled_for: DateTime<Utc>,
    /// By the database's clock.
    pub started_at: DateTime<Utc>,
    /// The longest run.
    pub timeout: Duration,
    /// How long a renewal lasts.
    pub lease: Duration,
    /// What is used up.
    pub used: Used,
    /// The job's own retry settings.
    pub retry: RetryOverrides,
}

/// The job's retry columns, as several queries return them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryColumns {
    pub(crate) max_retries: Option<i32>,
    pub(crate) retry_delay_ms: Option<i64>,
    pub(crate) retry_multiplier: Option<f64>,
    pub(crate) retry_max_delay_ms: Option<i64>,
    pub(crate) retry_jitter: Option<f64>,
}

impl From<RetryColumns> for RetryOverrides {
    fn from(columns: RetryColumns) -> Self {
        let millis = |ms: i64| Duration::from_millis(ms.max(0) as u64);
        Self {
            max_retries: columns.max_retries.map(|n| n.max(0) as u32),
            delay: columns.retry_delay_ms.map(millis),
            multiplier: columns.retry_multiplier,
            max_delay: columns.retry_max_delay_ms.map(millis),
            jitter: columns.retry_jitter,
        }
    }
}

/// Opens what can be opened of `requests` (at most one per execution) for `worker`. A job without a
/// lease of its own gets `lease`. Only rows whose task type is among `task_types` are opened. A ticket of a failed execution is a requeue by hand: the budgets
/// start anew and the move is recorded under `actor`.
pub async fn open(
    store: &Store,
    worker: ProcessId,
    actor: &str,
    task_types: &[String],
    requests: &[OpenRequest],
    lease: Duration,
    now: Now,
) -> Result<Vec<Opened>, StoreError> {
    let ids: Vec<Uuid> = requests.iter().map(|request| request.execution_id.get()).collect();
    let attempts: Vec<i32> = requests.iter().map(|request| request.attempt.get()).collect();
    let tokens: Vec<Uuid> = requests.iter().map(|request| request.token.get()).collect();
    let rows = sqlx::query_as!(
        OpenedRow,
        r#"-- open_attempts
        WITH l AS MATERIALIZED (
            SELECT e.id, r.token, e.state AS was, e.attempt
            FROM executions e
            JOIN unnest($1::uuid[], $2::int[], $3::uuid[]) AS r (id, attempt, token) ON r.id = e.id
            WHERE e.attempt = r.attempt AND e.state IN ('pending', 'retrying', 'failed')
              AND coalesce(e.next_attempt_at, '-infinity') <= coalesce($6, now())
              AND e.task_type = ANY ($8::text[])
            ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED),
        u AS (
            UPDATE executions e SET
                state = 'running', worker_id = $4, open_token = l.token, rev = e.rev + 1,
                lease_until = coalesce($6, now())
                    + coalesce(j.lease_ms, $5::bigint) * interval '1 millisecond',
                started_at = coalesce($6, now()), finished_at = NULL, next_attempt_at = NULL,
                ticket_published_at = coalesce(e.ticket_published_at, $6, now()),
                reconcile_count = 0,
                retries_used = CASE WHEN l.was = 'failed' THEN 0 ELSE e.retries_used END,
                crashes_used = CASE WHEN l.was = 'failed' THEN 0 ELSE e.crashes_used END,
                cancel_requested = e.cancel_requested AND l.was <> 'failed'
            FROM l, jobs j
            WHERE e.id = l.id AND j.id = e.job_id
            RETURNING e.*, l.was, j.name AS job_name, j.timeout_ms, j.max_retries, j.retry_delay_ms,
                      j.retry_multiplier, j.retry_max_delay_ms, j.retry_jitter,
                      coalesce(j.lease_ms, $5::bigint) AS lease_ms),
        a AS (
            INSERT INTO attempts (execution_id, number, worker_id, opened_at)
            SELECT u.id, u.attempt, $4, u.started_at FROM u),
        o AS (
            INSERT INTO operator_actions (at, actor, action, job_id, execution_id, before, after)
            SELECT u.started_at, $7, 'hand_requeue', u.job_id, u.id,
                   jsonb_build_object('state', 'failed', 'attempt', u.attempt),
                   jsonb_build_object('state', 'running', 'attempt', u.attempt)
            FROM u WHERE u.was = 'failed')
        SELECT id AS "id!", attempt AS "attempt!", open_token AS "token!", job_name AS "job_name!",
               task_type AS "task_type!", target, params AS "params!",
               execution_key AS "execution_key!", idempotency_key AS "idempotency_key!",
               scheduled_for AS "scheduled_for!", started_at AS "started_at!",
               timeout_ms AS "timeout_ms!", lease_ms AS "lease_ms!", retries_used AS "retries_used!",
               crashes_used AS "crashes_used!", max_retries, retry_delay_ms, retry_multiplier,
               retry_max_delay_ms, retry_jitter
        FROM u"#,
        &ids,
        &attempts,
        &tokens,
        worker.get(),
        lease.as_millis() as i64,
        now,
        actor,
        task_types
    )
    .fetch_all(store.bounded())
    .await?;
    rows.into_iter().map(OpenedRow::opened).collect()
}

/// Reads the attempts that these very requests had opened before, when the answer was lost on the
/// way: running, with the request's number and token.
pub async fn recover(
    store: &Store,
    requests: &[OpenRequest],
    lease: Duration,
) -> Result<Vec<Opened>, StoreError> {
    let ids: Vec<Uuid> = requests.iter().map(|request| request.execution_id.get()).collect();
    let attempts: Vec<i32> = requests.iter().map(|request| request.attempt.get()).collect();
    let tokens: Vec<Uuid> = requests.iter().map(|request| request.token.get()).collect();
    let rows = sqlx::query_as!(
        OpenedRow,
        r#"-- recover_attempts
        SELECT e.id, e.attempt, e.open_token AS "token!", j.name AS job_name, e.task_type, e.target,
               e.params, e.execution_key, e.idempotency_key, e.scheduled_for,
               e.started_at AS "started_at!", j.timeout_ms,
               coalesce(j.lease_ms, $4::bigint) AS "lease_ms!", e.retries_used, e.crashes_used,
               j.max_retries, j.retry_delay_ms, j.retry_multiplier, j.retry_max_delay_ms,
               j.retry_jitter
        FROM executions e
        JOIN unnest($1::uuid[], $2::int[], $3::uuid[]) AS r (id, attempt, token) ON r.id = e.id
        JOIN jobs j ON j.id = e.job_id
        WHERE e.state = 'running' AND e.attempt = r.attempt AND e.open_token = r.token"#,
        &ids,
        &attempts,
        &tokens,
        lease.as_millis() as i64
    )
    .fetch_all(store.bounded())
    .await?;
    rows.into_iter().map(OpenedRow::opened).collect()
}

/// Reads, without a lock, the rows that opened nothing, for [`sexton_model::open::answer`]. A
/// request whose execution does not exist is absent from the answer.
pub async fn look(
    store: &Store,
    task_types: &[String],
    requests: &[OpenRequest],
    now: Now,
) -> Result<Vec<(ExecutionId, Row)>, StoreError> {
    let ids: Vec<Uuid> = requests.iter().map(|request| request.execution_id.get()).collect();
    let tokens: Vec<Uuid> = requests.iter().map(|request| request.token.get()).collect();
    let rows = sqlx::query!(
        r#"-- look_at_unopened
        SELECT e.id, e.state, e.attempt, e.open_token IS NOT DISTINCT FROM r.token AS "mine!",
               e.next_attempt_at - coalesce($3, now()) > interval '0' AS early,
               (extract(epoch FROM e.next_attempt_at - coalesce($3, now())) * 1000)::bigint AS due_in_ms,
               coalesce(e.lease_until >= coalesce($3, now()), false) AS "lease_alive!",
               e.task_type = ANY ($4::text[]) AS "offered!"
        FROM executions e JOIN unnest($1::uuid[], $2::uuid[]) AS r (id, token) ON r.id = e.id"#,
        &ids,
        &tokens,
        now,
        task_types
    )
    .fetch_all(store.bounded())
    .await?;
    rows.into_iter()
        .map(|row| {
            // Less than a millisecond early is still early: the open asks the same clock.
            let due_in_ms = row.due_in_ms.unwrap_or(0);
            let early_ms = if row.early == Some(true) { due_in_ms.max(1) } else { 0 };
            Ok((
                ExecutionId::new(row.id),
                Row {
                    state: known("executions.state", &row.state, State::parse)?,
                    attempt: number(row.attempt)?,
                    mine: row.mine,
                    due_in: Duration::from_millis(early_ms as u64),
                    overdue: Duration::from_millis((-due_in_ms).max(0) as u64),
                    lease_alive: row.lease_alive,
                    offered: row.offered,
                },
            ))
        })
        .collect()
}

/// The columns of an open attempt, as both queries return them.
struct OpenedRow {
    id: Uuid,
    attempt: i32,
    token: Uuid,
    job_name: String,
    task_type: String,
    target: Option<String>,
    params: Value,
    execution_key: String,
    idempotency_key: String,
    scheduled_for: DateTime<Utc>,
    started_at: DateTime<Utc>,
    timeout_ms: i64,
    lease_ms: i64,
    retries_used: i32,
    crashes_used: i32,
    max_retries: Option<i32>,
    retry_delay_ms: Option<i64>,
    retry_multiplier: Option<f64>,
    retry_max_delay_ms: Option<i64>,
    retry_jitter: Option<f64>,
}

impl OpenedRow {
    fn opened(self) -> Result<Opened, StoreError> {
        Ok(Opened {
            execution_id: ExecutionId::new(self.id),
            attempt: number(self.attempt)?,
            token: OpenToken::new(self.token),
            job: self.job_name,
            task_type: self.task_type,
            target: self.target,
            params: self.params,
            execution_key: self.execution_key,
            idempotency_key: self.idempotency_key,
            scheduled_for: self.scheduled_for,
            started_at: self.started_at,
            timeout: Duration::from_millis(self.timeout_ms.max(0) as u64),
            lease: Duration::from_millis(self.lease_ms.max(0) as u64),
            used: used(self.retries_used, self.crashes_used),
            retry: RetryColumns {
                max_retries: self.max_retries,
                retry_delay_ms: self.retry_delay_ms,
                retry_multiplier: self.retry_multiplier,
                retry_max_delay_ms: self.retry_max_delay_ms,
                retry_jitter: self.retry_jitter,
            }
            .into(),
        })
    }
}

pub(crate) fn number(attempt: i32) -> Result<AttemptNumber, StoreError> {
    AttemptNumber::new(attempt).ok_or_else(|| StoreError::Inconsistent {
        place: "executions.attempt",
        value: attempt.to_string(),
    })
}

pub(crate) fn used(retries: i32, crashes: i32) -> Used {
    Used { retries: retries.max(0) as u32, crashes: crashes.max(0) as u32 }
}
