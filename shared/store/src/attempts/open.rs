//! Open: turns tickets into running attempts.
//!
//! One statement for a batch of tickets of distinct executions. It changes exactly the rows whose attempt number is
//! the ticket's, that have a ticket and are due. Until the attempt ends, the execution's row is all that is written of
//! it. A firing that no worker has begun and that has become too old for its job is skipped by the same statement
//! instead: of two workers one skips it, and no skipped firing is opened. A ticket's token shows whether it won, so a
//! worker can ask again after a lost answer. A crash after the statement leaves a running attempt without a worker: its
//! lease is not renewed, and the rescuer ends it as lost.

mod opened_row;
mod retry_columns;

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::id::{AttemptNumber, ExecutionId, OpenToken, ProcessId};
use sexton_model::job::{JobLock, OnLocked, RetryOverrides};
use sexton_model::open::{ExecutionRow, STALE_REASON};
use sexton_model::retry::{RetryPolicy, Usage};
use sexton_model::state::State;
use uuid::Uuid;

use opened_row::OpenedRow;
pub(crate) use retry_columns::RetryColumns;

use crate::connection::dedicated::ExecutorSource;
use crate::error::parse_column;
use crate::{Now, StoreError};

/// A request to open a ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenRequest {
    /// The execution.
    pub execution_id: ExecutionId,
    /// The ticket's number.
    pub attempt: AttemptNumber,
    /// Drawn for this request, and repeated with it.
    pub token: OpenToken,
}

/// A task type that a worker offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Its name.
    pub task_type: String,
    /// The crash budget for jobs that set none. The open records it, because the process that later finds an attempt
    /// lost does not know this worker's catalogue.
    pub max_crashes: u32,
}

impl Offer {
    /// Makes an offer with the default crash budget.
    pub fn new(task_type: impl Into<String>) -> Self {
        Self { task_type: task_type.into(), max_crashes: RetryPolicy::default().max_crashes }
    }
}

/// An open attempt: the task to run, and its policies.
#[derive(Clone, PartialEq, Debug)]
pub struct Opened {
    /// The execution.
    pub execution_id: ExecutionId,
    /// The attempt's number.
    pub attempt: AttemptNumber,
    /// The worker's token.
    pub token: OpenToken,
    /// The job's name.
    pub job: String,
    /// The pool in which it runs.
    pub pool: String,
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
    /// When it was due; `None`: not known.
    pub due_at: Option<DateTime<Utc>>,
    /// By the database's clock.
    pub started_at: DateTime<Utc>,
    /// The longest run.
    pub timeout: Duration,
    /// How long a renewal lasts.
    pub lease: Duration,
    /// The budgets used so far.
    pub used: Usage,
    /// The job's retry settings, with the crash budget that was recorded at the open.
    pub retry: RetryOverrides,
    /// The lock to hold while the task runs.
    pub lock: Option<JobLock>,
    /// What follows if that lock is held elsewhere.
    pub on_locked: OnLocked,
}

/// The result for the tickets that could be opened. The others are in neither list.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OpenOutcome {
    /// The attempts.
    pub opened: Vec<Opened>,
    /// Executions that were too late to begin, and are skipped now. A crash afterwards leaves a spent ticket.
    pub skipped: Vec<ExecutionId>,
}

/// Opens, or skips as stale, the tickets of `requests` (at most one per execution) that can be opened, for `worker`.
/// Jobs that set no lease get `lease`. Opens only rows whose task type is among `offers`. A ticket of a failed
/// execution is a requeue by hand: the budgets start anew, and the audit records it under `actor`.
pub async fn open(
    mut on: impl ExecutorSource,
    worker: ProcessId,
    actor: &str,
    offers: &[Offer],
    requests: &[OpenRequest],
    lease: Duration,
    now: Now,
) -> Result<OpenOutcome, StoreError> {
    let ids: Vec<Uuid> = requests.iter().map(|request| request.execution_id.get()).collect();
    let attempts: Vec<i32> = requests.iter().map(|request| request.attempt.get()).collect();
    let tokens: Vec<Uuid> = requests.iter().map(|request| request.token.get()).collect();
    let task_types: Vec<String> = offers.iter().map(|offer| offer.task_type.clone()).collect();
    let crashes: Vec<i32> = offers.iter().map(|offer| offer.max_crashes as i32).collect();
    let rows = sqlx::query_as!(
        OpenedRow,
        r#"-- open_attempts
        WITH l AS MATERIALIZED (
            SELECT e.id, r.token, e.state AS was, e.next_attempt_at AS due_at,
                   -- Of firings only: triggers and tasks of other programs have other keys. One that was
                   -- begun, or failed and was requeued, has a higher number.
                   j.stale_after_ms IS NOT NULL AND e.state = 'pending' AND e.attempt = 1 AND NOT e.own_key
                       AND e.backfill IS NULL AND e.execution_key ~ '^(cron|every|once)-'
                       AND coalesce(e.scheduled_for + j.stale_after_ms * interval '1 millisecond'
                                    < coalesce($6, now()), false) AS stale,
                   coalesce(j.deleted_name, j.name) AS job_name, j.timeout_ms, j.max_retries, j.max_timeouts,
                   coalesce(j.max_crashes, ($9::int[])[array_position($8::text[], e.task_type)]) AS crashes,
                   j.retry_delay_ms, j.retry_multiplier, j.retry_max_delay_ms, j.retry_jitter,
                   j.permanent_classes, coalesce(j.lease_ms, $5::bigint) AS lease_ms,
                   j.lock_key, j.lock_row, j.lock_at_most_ms, j.lock_at_least_ms, j.on_locked,
                   CASE WHEN j.heartbeat IS NOT NULL THEN true END AS heartbeat
            FROM sexton.executions e
            JOIN unnest($1::uuid[], $2::int[], $3::uuid[]) AS r (id, attempt, token) ON r.id = e.id
            JOIN sexton.jobs j ON j.id = e.job_id
            WHERE e.attempt = r.attempt AND e.state IN ('pending', 'retrying', 'failed')
              AND coalesce(e.next_attempt_at, '-infinity') <= coalesce($6, now())
              AND e.task_type = ANY ($8::text[])
              -- A waiter is opened by the ticket that its admission publishes; this is an older copy.
              AND NOT (e.state = 'pending' AND e.waits IS NOT NULL AND e.admitted_at IS NULL)
            ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED),
        u AS (
            UPDATE sexton.executions e SET
                state = CASE WHEN l.stale THEN 'skipped' ELSE 'running' END, rev = e.rev + 1,
                skip_reason = CASE WHEN l.stale THEN $10::text END,
                worker_id = CASE WHEN NOT l.stale THEN $4::uuid END,
                open_token = CASE WHEN NOT l.stale THEN l.token END,
                lease_until = CASE WHEN NOT l.stale
                    THEN coalesce($6, now()) + l.lease_ms * interval '1 millisecond' END,
                lease_ms = CASE WHEN NOT l.stale THEN l.lease_ms END,
                started_at = CASE WHEN NOT l.stale THEN coalesce($6, now()) END,
                finished_at = CASE WHEN l.stale THEN coalesce($6, now()) END, next_attempt_at = NULL,
                ticket_published_at = coalesce(e.ticket_published_at, $6, now()),
                reconcile_count = 0,
                retries_used = CASE WHEN l.was = 'failed' THEN 0 ELSE e.retries_used END,
                timeouts_used = CASE WHEN l.was = 'failed' THEN 0 ELSE e.timeouts_used END,
                crashes_used = CASE WHEN l.was = 'failed' THEN 0 ELSE e.crashes_used END,
                snoozes_used = CASE WHEN l.was = 'failed' THEN 0 ELSE e.snoozes_used END,
                max_crashes = l.crashes, heartbeat = l.heartbeat,
                cancel_requested = e.cancel_requested AND l.was <> 'failed'
            FROM l WHERE e.id = l.id
            RETURNING e.id, e.job_id, e.pool, l.due_at, e.attempt, e.asks_about, e.execution_key, e.task_type, e.target, e.params,
                      e.idempotency_key, e.scheduled_for, e.started_at, e.finished_at, e.retries_used,
                      e.timeouts_used, e.crashes_used, e.snoozes_used, e.max_crashes, l.was, l.stale, l.token,
                      l.job_name, l.timeout_ms, l.max_retries, l.max_timeouts, l.retry_delay_ms,
                      l.retry_multiplier, l.retry_max_delay_ms, l.retry_jitter, l.permanent_classes, l.lease_ms,
                      l.lock_key, l.lock_row, l.lock_at_most_ms, l.lock_at_least_ms, l.on_locked),
        o AS (
            INSERT INTO sexton.operator_actions (at, actor, action, job_id, execution_id, before, after)
            SELECT u.started_at, $7, 'hand_requeue', u.job_id, u.id,
                   jsonb_build_object('state', 'failed', 'attempt', u.attempt),
                   jsonb_build_object('state', 'running', 'attempt', u.attempt)
            FROM u WHERE u.was = 'failed')
        SELECT id AS "id!", stale AS "stale!", attempt AS "attempt!", token AS "token!",
               -- A question finds the job and the key of what it asks about.
               CASE WHEN asks_about IS NULL THEN job_name ELSE coalesce((
                   SELECT coalesce(aj.deleted_name, aj.name) FROM sexton.executions ae JOIN sexton.jobs aj ON aj.id = ae.job_id
                   WHERE ae.id = u.asks_about), job_name) END AS "job_name!",
               CASE WHEN asks_about IS NULL THEN execution_key ELSE coalesce((
                   SELECT ae.execution_key FROM sexton.executions ae WHERE ae.id = u.asks_about), execution_key) END
                   AS "execution_key!", pool AS "pool!", due_at, task_type AS "task_type!", target, params AS "params!",
               idempotency_key AS "idempotency_key!",
               scheduled_for AS "scheduled_for!", coalesce(started_at, finished_at) AS "started_at!",
               timeout_ms AS "timeout_ms!", lease_ms AS "lease_ms!", retries_used AS "retries_used!",
               timeouts_used AS "timeouts_used!", crashes_used AS "crashes_used!",
               snoozes_used AS "snoozes_used!", max_retries, max_timeouts, max_crashes, retry_delay_ms, retry_multiplier, retry_max_delay_ms,
               retry_jitter, permanent_classes, lock_key, lock_row, lock_at_most_ms, lock_at_least_ms,
               on_locked AS "on_locked!"
        FROM u"#,
        &ids,
        &attempts,
        &tokens,
        worker.get(),
        lease.as_millis() as i64,
        now,
        actor,
        &task_types,
        &crashes,
        STALE_REASON
    )
    .fetch_all(on.executor())
    .await?;
    let mut answered = OpenOutcome::default();
    for row in rows {
        if row.stale {
            answered.skipped.push(ExecutionId::new(row.id));
        } else {
            answered.opened.push(row.opened()?);
        }
    }
    Ok(answered)
}

/// Reads the attempts that these requests had opened before, when the answer was lost: running, with the request's
/// number and token.
pub async fn recover(
    mut on: impl ExecutorSource,
    requests: &[OpenRequest],
    lease: Duration,
) -> Result<Vec<Opened>, StoreError> {
    let ids: Vec<Uuid> = requests.iter().map(|request| request.execution_id.get()).collect();
    let attempts: Vec<i32> = requests.iter().map(|request| request.attempt.get()).collect();
    let tokens: Vec<Uuid> = requests.iter().map(|request| request.token.get()).collect();
    let rows = sqlx::query_as!(
        OpenedRow,
        r#"-- recover_attempts
        SELECT e.id, false AS "stale!", e.attempt, e.open_token AS "token!",
               coalesce((SELECT coalesce(aj.deleted_name, aj.name) FROM sexton.executions ae JOIN sexton.jobs aj ON aj.id = ae.job_id
                         WHERE ae.id = e.asks_about), j.deleted_name, j.name) AS "job_name!",
               coalesce((SELECT ae.execution_key FROM sexton.executions ae WHERE ae.id = e.asks_about),
                        e.execution_key) AS "execution_key!",
               e.pool, NULL::timestamptz AS due_at, e.task_type, e.target, e.params, e.idempotency_key, e.scheduled_for,
               e.started_at AS "started_at!", j.timeout_ms,
               -- As it was opened, since that is what it is judged by, whatever the job says by now.
               coalesce(e.lease_ms, j.lease_ms, $4::bigint) AS "lease_ms!", e.retries_used, e.timeouts_used,
               e.crashes_used, e.snoozes_used, j.max_retries, j.max_timeouts,
               coalesce(e.max_crashes, j.max_crashes) AS max_crashes, j.retry_delay_ms,
               j.retry_multiplier, j.retry_max_delay_ms, j.retry_jitter, j.permanent_classes, j.lock_key, j.lock_row,
               j.lock_at_most_ms, j.lock_at_least_ms, j.on_locked
        FROM sexton.executions e
        JOIN unnest($1::uuid[], $2::int[], $3::uuid[]) AS r (id, attempt, token) ON r.id = e.id
        JOIN sexton.jobs j ON j.id = e.job_id
        WHERE e.state = 'running' AND e.attempt = r.attempt AND e.open_token = r.token"#,
        &ids,
        &attempts,
        &tokens,
        lease.as_millis() as i64
    )
    .fetch_all(on.executor())
    .await?;
    rows.into_iter().map(OpenedRow::opened).collect()
}

/// Reads, without a lock, the rows of the requests that opened nothing, for [`sexton_model::open::decide_unopened`].
/// A request whose execution does not exist is missing from the result.
pub async fn read_unopened(
    mut on: impl ExecutorSource,
    offers: &[Offer],
    requests: &[OpenRequest],
    now: Now,
) -> Result<Vec<(ExecutionId, ExecutionRow)>, StoreError> {
    let ids: Vec<Uuid> = requests.iter().map(|request| request.execution_id.get()).collect();
    let tokens: Vec<Uuid> = requests.iter().map(|request| request.token.get()).collect();
    let task_types: Vec<String> = offers.iter().map(|offer| offer.task_type.clone()).collect();
    let rows = sqlx::query!(
        r#"-- look_at_unopened
        SELECT e.id, e.state, e.attempt, e.open_token IS NOT DISTINCT FROM r.token AS "mine!",
               e.next_attempt_at - coalesce($3, now()) > interval '0' AS early,
               (extract(epoch FROM e.next_attempt_at - coalesce($3, now())) * 1000)::bigint AS due_in_ms,
               e.task_type = ANY ($4::text[]) AS "offered!",
               e.state = 'pending' AND e.waits IS NOT NULL AND e.admitted_at IS NULL AS "waits!"
        FROM sexton.executions e JOIN unnest($1::uuid[], $2::uuid[]) AS r (id, token) ON r.id = e.id"#,
        &ids,
        &tokens,
        now,
        &task_types
    )
    .fetch_all(on.executor())
    .await?;
    rows.into_iter()
        .map(|row| {
            // Less than a millisecond early is still early, because the open compares with the same clock.
            let due_in_ms = row.due_in_ms.unwrap_or(0);
            let early_ms = if row.early == Some(true) { due_in_ms.max(1) } else { 0 };
            Ok((
                ExecutionId::new(row.id),
                ExecutionRow {
                    state: parse_column("executions.state", &row.state, State::parse)?,
                    attempt: parse_attempt_number(row.attempt)?,
                    mine: row.mine,
                    due_in: Duration::from_millis(early_ms as u64),
                    overdue: Duration::from_millis((-due_in_ms).max(0) as u64),
                    offered: row.offered,
                    waits: row.waits,
                },
            ))
        })
        .collect()
}

pub(crate) fn parse_attempt_number(attempt: i32) -> Result<AttemptNumber, StoreError> {
    AttemptNumber::new(attempt).ok_or_else(|| StoreError::Inconsistent {
        place: "executions.attempt",
        value: attempt.to_string(),
    })
}

/// Parses the columns for retries, timeouts, crashes and snoozes.
pub(crate) fn parse_used(columns: [i32; 4]) -> Usage {
    let [retries, timeouts, crashes, snoozes] = columns.map(|count| count.max(0) as u32);
    Usage { retries, timeouts, crashes, snoozes }
}
