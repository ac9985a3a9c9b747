//! Lost: ends the attempts of workers that have vanished.
//!
//! Two processes do so: a scheduler's rescuer, which has seen the same renewal for a whole lease, or a worker that
//! starts under the instance lock of a dead one. The statement checks the grounds again, so a renewal that came in
//! between wins. The database's clock only dates the end, and decides nothing here.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sexton_model::fingerprint::fingerprint;
use sexton_model::id::{AttemptNumber, ExecutionId, ProcessId};
use sexton_model::job::RetryOverrides;
use sexton_model::retry::{Decision, LOST, Usage};
use uuid::Uuid;

use crate::attempts::open::{RetryColumns, parse_attempt_number, parse_used};
use crate::attempts::running::{LeaseRenewal, RunningAttempt};
use crate::{Now, Store, StoreError};

/// The recorded message of a lost attempt.
const MESSAGE: &str = "the worker was not heard of again before the lease ran out";

/// An open attempt to be ended as lost.
#[derive(Clone, PartialEq, Debug)]
pub struct LostAttempt {
    /// The execution.
    pub execution_id: ExecutionId,
    /// The attempt.
    pub attempt: AttemptNumber,
    /// The worker that held it.
    pub worker: ProcessId,
    /// The budgets that the execution has used.
    pub used: Usage,
    /// The job's retry settings, with the crash budget that its worker recorded at the open.
    pub retry: RetryOverrides,
}

/// Which open attempts count as lost, and on which grounds.
#[derive(Clone, Copy, Debug)]
pub enum LossGrounds<'a> {
    /// Attempts whose last renewal a process has seen for a whole lease by its own clock, as long as that stays the
    /// last renewal, on the server that it was read from.
    Unrenewed(&'a [RunningAttempt]),
    /// Attempts of workers that are known to be dead, whatever their lease.
    OfWorkers(&'a [ProcessId]),
}

impl LossGrounds<'_> {
    /// The workers of [`Self::OfWorkers`].
    fn workers(&self) -> Option<Vec<Uuid>> {
        match self {
            Self::Unrenewed(_) => None,
            Self::OfWorkers(workers) => Some(workers.iter().map(|worker| worker.get()).collect()),
        }
    }

    /// The renewals that were seen, by execution.
    fn renewals(&self) -> HashMap<ExecutionId, &LeaseRenewal> {
        match self {
            Self::Unrenewed(seen) => {
                seen.iter().map(|one| (one.execution_id, &one.renewed)).collect()
            }
            Self::OfWorkers(_) => HashMap::new(),
        }
    }
}

/// Finds up to `limit` lost attempts.
pub async fn find(
    store: &Store,
    grounds: &LossGrounds<'_>,
    limit: i64,
) -> Result<Vec<LostAttempt>, StoreError> {
    let ids: Vec<Uuid> = match grounds {
        LossGrounds::Unrenewed(seen) => seen.iter().map(|one| one.execution_id.get()).collect(),
        LossGrounds::OfWorkers(workers) => {
            let workers: Vec<Uuid> = workers.iter().map(|worker| worker.get()).collect();
            sqlx::query_scalar!(
                "-- find_attempts_of
                SELECT id FROM sexton.executions WHERE state = 'running' AND worker_id = ANY ($1)
                ORDER BY id LIMIT $2",
                &workers,
                limit
            )
            .fetch_all(store.with_timeout())
            .await?
        }
    };
    let rows = sqlx::query!(
        r#"-- find_lost
        SELECT e.id, e.attempt, e.worker_id AS "worker_id!", e.retries_used, e.timeouts_used,
               e.crashes_used, e.snoozes_used, j.max_retries, j.max_timeouts,
               coalesce(e.max_crashes, j.max_crashes) AS max_crashes, j.retry_delay_ms,
               j.retry_multiplier, j.retry_max_delay_ms, j.retry_jitter, j.permanent_classes
        FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
        WHERE e.state = 'running' AND e.id = ANY ($1)
        ORDER BY e.id LIMIT $2"#,
        &ids,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(LostAttempt {
                execution_id: ExecutionId::new(row.id),
                attempt: parse_attempt_number(row.attempt)?,
                worker: ProcessId::new(row.worker_id),
                used: parse_used([
                    row.retries_used,
                    row.timeouts_used,
                    row.crashes_used,
                    row.snoozes_used,
                ]),
                retry: RetryColumns {
                    max_retries: row.max_retries,
                    max_timeouts: row.max_timeouts,
                    max_crashes: row.max_crashes,
                    retry_delay_ms: row.retry_delay_ms,
                    retry_multiplier: row.retry_multiplier,
                    retry_max_delay_ms: row.retry_max_delay_ms,
                    retry_jitter: row.retry_jitter,
                    permanent_classes: row.permanent_classes,
                }
                .into(),
            })
        })
        .collect()
}

/// Ends lost attempts by their verdicts (never with success), each only if it is still open and the grounds still
/// hold. Their tickets are due at once, and the relay publishes them. The message of a row that fails names the last
/// crashes: which attempt, on which worker, when. Returns the executions that changed.
pub async fn settle(
    store: &Store,
    grounds: &LossGrounds<'_>,
    lost: &[(LostAttempt, Decision)],
    now: Now,
) -> Result<Vec<ExecutionId>, StoreError> {
    if lost.is_empty() {
        return Ok(Vec::new());
    }
    let (workers, renewals) = (grounds.workers(), grounds.renewals());
    let ids: Vec<Uuid> = lost.iter().map(|(one, _)| one.execution_id.get()).collect();
    let attempts: Vec<i32> = lost.iter().map(|(one, _)| one.attempt.get()).collect();
    let mut states = Vec::with_capacity(lost.len());
    let mut waits = Vec::with_capacity(lost.len());
    let mut crashes = Vec::with_capacity(lost.len());
    let mut tokens: Vec<Option<Uuid>> = Vec::with_capacity(lost.len());
    let mut lease_until: Vec<Option<DateTime<Utc>>> = Vec::with_capacity(lost.len());
    let mut written_by: Vec<Option<i64>> = Vec::with_capacity(lost.len());
    let mut servers: Vec<Option<DateTime<Utc>>> = Vec::with_capacity(lost.len());
    for (one, verdict) in lost {
        // An attempt without a seen renewal equals nothing, and stays.
        let renewed = renewals.get(&one.execution_id);
        tokens.push(renewed.map(|renewed| renewed.token.get()));
        lease_until.push(renewed.map(|renewed| renewed.lease_until));
        written_by.push(renewed.map(|renewed| renewed.written_by));
        servers.push(renewed.map(|renewed| renewed.server));
        let (state, wait_ms, used) = match verdict {
            Decision::Retry { after, used } => ("retrying", after.as_millis() as i64, *used),
            Decision::Fail { used } => ("failed", 0, *used),
            Decision::Succeed | Decision::Skip => ("failed", 0, one.used),
        };
        states.push(state.to_owned());
        waits.push(wait_ms);
        crashes.push(used.crashes as i32);
    }
    let ids = sqlx::query_scalar!(
        r#"-- settle_lost
        WITH r AS (
            SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[], $4::bigint[], $5::int[],
                                 $10::uuid[], $11::timestamptz[], $12::bigint[], $13::timestamptz[])
                 AS r (id, attempt, state, wait_ms, crashes, token, lease_until, written_by, server)),
        l AS MATERIALIZED (
            SELECT r.*, e.worker_id, e.lease_ms, coalesce(e.started_at, e.claimed_at) AS started_at,
                   CASE WHEN e.cancel_requested OR e.replaced_by IS NOT NULL THEN 'cancelled'
                        ELSE r.state END AS becomes
            FROM sexton.executions e JOIN r ON r.id = e.id
            WHERE e.attempt = r.attempt AND e.state = 'running'
              AND CASE WHEN $6::uuid[] IS NULL THEN
                           e.open_token = r.token AND e.lease_until = r.lease_until
                           AND e.xmin::text::bigint = r.written_by AND pg_postmaster_start_time() = r.server
                       ELSE e.worker_id = ANY ($6) END
              -- It names the attempt, so that no plan asks for the flows of other rows.
              AND CASE WHEN e.attempt = r.attempt THEN e.flow_id IS NULL OR sexton.lock_flow(e.flow_id) ELSE false END
            ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED),
        u AS (
            UPDATE sexton.executions e SET
                state = l.becomes, rev = e.rev + 1,
                attempt = e.attempt + CASE WHEN l.becomes IN ('retrying', 'failed') THEN 1 ELSE 0 END,
                worker_id = NULL, open_token = NULL, lease_until = NULL, lease_ms = NULL,
                next_attempt_at = CASE WHEN l.becomes = 'retrying'
                    THEN coalesce($7, now()) + l.wait_ms * interval '1 millisecond' END,
                finished_at = CASE WHEN l.becomes <> 'retrying' THEN coalesce($7, now()) END,
                ticket_published_at = CASE WHEN l.becomes IN ('retrying', 'failed') THEN NULL
                    ELSE e.ticket_published_at END,
                relay_after = coalesce($7, now()),
                crashes_used = l.crashes,
                cancel_requested = e.cancel_requested AND l.becomes = 'cancelled',
                outcome = 'lost', error_class = 'lost',
                fingerprint = CASE WHEN l.becomes = 'failed' THEN $9 END, error_message = $8::text
                    || CASE WHEN l.becomes = 'failed' THEN (
                        SELECT format('; %s crashed, no more are allowed: ', l.crashes) || string_agg(
                            format('attempt %s %s on %s, begun %s%s', t.number,
                                   replace(t.outcome, '_', ' '),
                                   coalesce(i.name, t.worker_id::text),
                                   to_char(t.opened_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'),
                                   ', signal ' || t.signal), '; ' ORDER BY t.number)
                        FROM (SELECT l.attempt AS number, 'lost' AS outcome, l.worker_id, l.started_at AS opened_at,
                                     NULL::integer AS signal
                              UNION ALL
                              SELECT c.number, c.outcome, c.worker_id, c.opened_at, c.signal FROM sexton.attempts c
                              WHERE c.execution_id = l.id AND c.number <> l.attempt
                                AND c.outcome IN ('lost', 'out_of_memory')
                              ORDER BY number DESC LIMIT least(l.crashes, 5)) t
                        LEFT JOIN sexton.instances i ON i.id = t.worker_id) ELSE '' END
            FROM l WHERE e.id = l.id RETURNING e.id),
        a AS (
            INSERT INTO sexton.attempts AS t (execution_id, number, worker_id, lease_ms, opened_at, finished_at,
                                       outcome, error_class, error_message)
            SELECT l.id, l.attempt, l.worker_id, l.lease_ms, l.started_at, coalesce($7, now()), 'lost', 'lost', $8
            FROM l
            ON CONFLICT (execution_id, number) DO UPDATE SET finished_at = EXCLUDED.finished_at,
                outcome = EXCLUDED.outcome, error_class = EXCLUDED.error_class,
                error_message = EXCLUDED.error_message
            WHERE t.outcome IS NULL)
        SELECT id AS "id!" FROM u"#,
        &ids,
        &attempts,
        &states,
        &waits,
        &crashes,
        workers.as_deref(),
        now,
        MESSAGE,
        fingerprint(LOST, MESSAGE).to_string(),
        &tokens as &[Option<Uuid>],
        &lease_until as &[Option<DateTime<Utc>>],
        &written_by as &[Option<i64>],
        &servers as &[Option<DateTime<Utc>>]
    )
    .fetch_all(store.with_timeout())
    .await?;
    Ok(ids.into_iter().map(ExecutionId::new).collect())
}
