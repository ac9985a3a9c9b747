//! Transitions that operators cause, of any number of executions at once.
//!
//! The caller has locked the rows in the order of their ids, and records the action in the same transaction. Each row
//! is written only if its state and attempt number are those that the operator saw; a row that has changed is missing
//! from the result.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;
use crate::tickets::waiters::NOT_BEFORE_ADMISSION;
use crate::tickets::{TicketRow, UnpublishedTicket};

/// An execution, and the attempt number that the operator saw.
pub(crate) type SeenAttempt = (ExecutionId, AttemptNumber);

/// The audit's value where the operator skipped the job's verify task.
pub(crate) const UNVERIFIED: &str = "none";

/// The options of a requeue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RequeueOptions<'a> {
    /// The pool; `None`: its own.
    pub pool: Option<&'a str>,
    /// Whether to skip the job's verify task; the audit records it.
    pub unverified: bool,
}

/// The result of a requeue.
#[derive(Debug, Default)]
pub(crate) struct Requeued {
    /// The requeued executions.
    pub(crate) ids: Vec<Uuid>,
    /// The tickets among them to publish now.
    pub(crate) tickets: Vec<UnpublishedTicket>,
    /// The number among them that wait for their job's turn.
    pub(crate) waits: usize,
}

/// Moves failed executions to pending, with full budgets. The relay leaves their tickets to the caller until
/// `relay_after`.
pub(crate) async fn requeue(
    connection: &mut PgConnection,
    seen: &[SeenAttempt],
    terms: RequeueOptions<'_>,
    relay_after: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Requeued, StoreError> {
    let (ids, attempts) = to_columns(seen);
    let rows = sqlx::query!(
        r#"-- requeue
        UPDATE sexton.executions e SET state = 'pending', rev = e.rev + 1, ticket_published_at = NULL,
            relay_after = CASE WHEN j.overlap IN ('queue', 'replace') AND e.overlap_override IS NULL
                THEN $4::timestamptz ELSE $5 END,
            waits = CASE WHEN j.overlap IN ('queue', 'replace') AND e.overlap_override IS NULL
                THEN 'turn' END, admitted_at = NULL,
            next_attempt_at = $3, retries_used = 0, timeouts_used = 0,
            crashes_used = 0, snoozes_used = 0, cancel_requested = false, finished_at = NULL,
            reconcile_count = 0, pool = coalesce($6, e.pool)
        FROM unnest($1::uuid[], $2::int[]) AS s (id, attempt), sexton.jobs j
        WHERE e.id = s.id AND e.attempt = s.attempt AND e.state = 'failed' AND j.id = e.job_id
        RETURNING e.id, e.job_id, coalesce(j.deleted_name, j.name) AS "job_name!", e.attempt, e.rev,
                  e.state, e.pool, e.task_type, e.target, e.params, e.execution_key, e.idempotency_key,
                  e.scheduled_for, e.next_attempt_at, e.finished_at, e.error_message, e.retries_used,
                  e.traceparent, e.tracestate, e.waits IS NOT NULL AS "waits!""#,
        &ids,
        &attempts,
        now,
        NOT_BEFORE_ADMISSION,
        relay_after,
        terms.pool
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    let mut requeued = Requeued::default();
    for row in rows {
        requeued.ids.push(row.id);
        if row.waits {
            requeued.waits += 1;
            continue;
        }
        let ticket = TicketRow {
            id: row.id,
            job_id: row.job_id,
            job_name: row.job_name,
            attempt: row.attempt,
            rev: row.rev,
            state: row.state,
            pool: row.pool,
            task_type: row.task_type,
            target: row.target,
            params: row.params,
            execution_key: row.execution_key,
            idempotency_key: row.idempotency_key,
            scheduled_for: row.scheduled_for,
            next_attempt_at: row.next_attempt_at,
            finished_at: row.finished_at,
            error_message: row.error_message,
            retries_used: row.retries_used,
            traceparent: row.traceparent,
            tracestate: row.tracestate,
            now,
        };
        // An unreadable row's ticket is due all the same, and the relay reports it.
        requeued.tickets.extend(ticket.into_unpublished().ok());
    }
    Ok(requeued)
}

/// Returns the audit's description of an execution after a requeue.
pub(crate) fn after_requeue(terms: RequeueOptions<'_>) -> Value {
    let mut after = json!({
        "state": "pending", "retries_used": 0, "timeouts_used": 0, "crashes_used": 0, "snoozes_used": 0
    });
    if let Some(pool) = terms.pool {
        after["pool"] = json!(pool);
    }
    if terms.unverified {
        after["verify"] = json!(UNVERIFIED);
    }
    after
}

/// Moves failed executions to discarded. Returns those moved.
pub(crate) async fn discard(
    connection: &mut PgConnection,
    seen: &[SeenAttempt],
    now: DateTime<Utc>,
) -> Result<Vec<Uuid>, StoreError> {
    let (ids, attempts) = to_columns(seen);
    Ok(sqlx::query_scalar!(
        "-- discard
        UPDATE sexton.executions e SET state = 'discarded', rev = e.rev + 1, finished_at = $3
        FROM unnest($1::uuid[], $2::int[]) AS s (id, attempt)
        WHERE e.id = s.id AND e.attempt = s.attempt AND e.state = 'failed' RETURNING e.id",
        &ids,
        &attempts,
        now
    )
    .fetch_all(WithTimeout(connection))
    .await?)
}

/// Moves failed executions to succeeded, without another attempt, because their effect has happened. Returns those
/// moved.
pub(crate) async fn resolve(
    connection: &mut PgConnection,
    seen: &[SeenAttempt],
    now: DateTime<Utc>,
) -> Result<Vec<Uuid>, StoreError> {
    let (ids, attempts) = to_columns(seen);
    Ok(sqlx::query_scalar!(
        "-- resolve
        UPDATE sexton.executions e SET state = 'succeeded', rev = e.rev + 1, finished_at = $3, outcome = 'verified'
        FROM unnest($1::uuid[], $2::int[]) AS s (id, attempt)
        WHERE e.id = s.id AND e.attempt = s.attempt AND e.state = 'failed' RETURNING e.id",
        &ids,
        &attempts,
        now
    )
    .fetch_all(WithTimeout(connection))
    .await?)
}

/// Moves discarded executions to failed, with an unpublished ticket for the failed queue. Returns those moved; one whose
/// caller's key another open execution has by now stays discarded.
pub(crate) async fn restore(
    connection: &mut PgConnection,
    seen: &[SeenAttempt],
    now: DateTime<Utc>,
) -> Result<Vec<Uuid>, StoreError> {
    let (ids, attempts) = to_columns(seen);
    Ok(sqlx::query_scalar!(
        "-- restore
        UPDATE sexton.executions e SET state = 'failed', rev = e.rev + 1, finished_at = $3,
            ticket_published_at = NULL, relay_after = $3
        FROM unnest($1::uuid[], $2::int[]) AS s (id, attempt)
        WHERE e.id = s.id AND e.attempt = s.attempt AND e.state = 'discarded'
          AND (e.unique_key IS NULL OR NOT EXISTS (
              SELECT FROM sexton.executions o WHERE o.job_id = e.job_id AND o.unique_key = e.unique_key
                AND (o.state IN ('pending', 'running', 'retrying', 'failed')
                     -- Of several that are restored together, one can have the key.
                     OR o.id > e.id AND o.state = 'discarded' AND o.id = ANY ($1))))
        RETURNING e.id",
        &ids,
        &attempts,
        now
    )
    .fetch_all(WithTimeout(connection))
    .await?)
}

/// The result of a cancel.
#[derive(Debug, Default)]
pub(crate) struct CancelledExecutions {
    /// Those that waited, and have ended.
    pub(crate) ended: Vec<Uuid>,
    /// Those that run, and whose workers will end them.
    pub(crate) requested: Vec<Uuid>,
}

/// Cancels executions that wait, and requests it of the workers of those that run, whichever attempt they have come to.
pub(crate) async fn cancel(
    connection: &mut PgConnection,
    ids: &[Uuid],
    now: DateTime<Utc>,
) -> Result<CancelledExecutions, StoreError> {
    let ended = sqlx::query_scalar!(
        "-- cancel_waiting
        UPDATE sexton.executions SET state = 'cancelled', rev = rev + 1, next_attempt_at = NULL,
            finished_at = $2, outcome = 'cancelled'
        WHERE id = ANY ($1) AND state IN ('pending', 'retrying') RETURNING id",
        ids,
        now
    )
    .fetch_all(WithTimeout(&mut *connection))
    .await?;
    let requested = sqlx::query_scalar!(
        "-- cancel_running
        UPDATE sexton.executions SET cancel_requested = true
        WHERE id = ANY ($1) AND state = 'running' AND NOT cancel_requested RETURNING id",
        ids
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(CancelledExecutions { ended, requested })
}

/// Returns the audit's description of an execution after a cancel.
pub(crate) fn after_cancel(was_running: bool) -> Value {
    if was_running {
        json!({"state": "running", "cancel_requested": true})
    } else {
        json!({"state": "cancelled"})
    }
}

fn to_columns(seen: &[SeenAttempt]) -> (Vec<Uuid>, Vec<i32>) {
    seen.iter().map(|(id, attempt)| (id.get(), attempt.get())).unzip()
}
