//! Settle: records how attempts ended.
//!
//! One statement for a batch (`plain` successes have their own): the execution's transition, its new unpublished
//! ticket and the attempt's record, all or nothing, each only while the attempt still belongs to this worker. The
//! worker then publishes the ticket, marks it, and acknowledges the old ticket last. A crash in between leaves an
//! unpublished ticket for the relay, and a spent ticket that the broker delivers again.

mod plain;

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use sexton_model::fingerprint::fingerprint;
use sexton_model::id::{ExecutionId, ProcessId};
use sexton_model::retry::{Decision, Usage};
use sexton_model::state::State;
use sqlx::PgExecutor;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use crate::attempts::lease::{AttemptFence, find_still_held_on};
use crate::attempts::output::{Columns, OutputPart};
use crate::connection::dedicated::ExecutorSource;
use crate::error::parse_column;
use crate::tickets::{TicketRow, UnpublishedTicket};
use crate::{Now, RELAY_DELAY_MS, Store, StoreError};

/// An attempt's end to record.
#[derive(Clone, PartialEq, Debug)]
pub struct Settlement {
    /// The attempt.
    pub fence: AttemptFence,
    /// The pure decision. An operator's cancel, known only to the row, takes precedence over a retry or a failure; a
    /// replacement by a newer firing, over a success as well.
    pub verdict: Decision,
    /// The attempt's outcome, as stored.
    pub outcome: &'static str,
    /// Class and message of the error.
    pub error: Option<(String, String)>,
    /// Exit code of the task's process.
    pub exit_code: Option<i32>,
    /// Signal that ended the task's process.
    pub signal: Option<i32>,
    /// The task's output and progress that are not stored yet.
    pub output: Option<OutputPart>,
    /// The task's result. Kept with the attempt, and with the execution if it succeeded.
    pub result: Option<Value>,
}

/// The result of a settlement.
#[derive(Clone, PartialEq, Debug)]
pub enum SettleOutcome {
    /// It is recorded.
    Done {
        /// The execution's state now.
        state: State,
        /// Its new ticket, for the caller to publish.
        unpublished: Option<Box<UnpublishedTicket>>,
    },
    /// Another transaction held the row's lock for a moment: settle in the next round.
    Locked,
    /// Another process had ended the attempt: nothing was written. Record the result as late, publish nothing.
    Fenced,
    /// Only in a task's own transaction: a newer firing has replaced the execution, so it must not succeed. Nothing
    /// was written. Roll back, then settle it as cut short.
    Replaced,
}

/// Returns the state and wait of a verdict, as the statement takes them.
fn verdict_columns(verdict: &Decision) -> (&'static str, i64, Option<Usage>) {
    match verdict {
        Decision::Succeed => (State::Succeeded.as_str(), 0, None),
        Decision::Retry { after, used } => {
            (State::Retrying.as_str(), after.as_millis() as i64, Some(*used))
        }
        Decision::Skip => (State::Skipped.as_str(), 0, None),
        Decision::Fail { used } => (State::Failed.as_str(), 0, Some(*used)),
    }
}

/// Returns the fingerprint of a final failure, of the attempt's own message without the crashes that the statement
/// adds.
fn failure_fingerprint(settlement: &Settlement) -> Option<String> {
    let (class, message) = settlement.error.as_ref().map_or(("", ""), |error| (&error.0, &error.1));
    matches!(settlement.verdict, Decision::Fail { .. })
        .then(|| fingerprint(class, message).to_string())
}

/// Records a batch, at most one settlement per execution. Returns the results in the order given. The message of a
/// row that fails by a crash names the last crashes: which attempt, on which worker, when, what signal.
///
/// # Errors
///
/// [`StoreError::Data`] when a value of the batch cannot be stored: nothing was written; settle one by one to find
/// the culprit.
pub async fn settle(
    mut on: impl ExecutorSource,
    settlements: &[Settlement],
    now: Now,
) -> Result<Vec<SettleOutcome>, StoreError> {
    let mut done: HashMap<Uuid, SettleOutcome> = HashMap::with_capacity(settlements.len());
    if plain::are_plain(settlements) {
        for id in plain::settle_plain(on.executor(), settlements, now).await? {
            done.insert(id, SettleOutcome::Done { state: State::Succeeded, unpublished: None });
        }
        if done.len() == settlements.len() {
            return Ok(vec![
                SettleOutcome::Done { state: State::Succeeded, unpublished: None };
                done.len()
            ]);
        }
    }
    for row in run(on.executor(), settlements, false, now).await? {
        let id = row.id;
        let state = parse_column("executions.state", &row.state, State::parse)?;
        let unpublished =
            if state.has_ticket() { Some(Box::new(row.into_unpublished()?)) } else { None };
        done.insert(id, SettleOutcome::Done { state, unpublished });
    }
    let untouched: Vec<AttemptFence> = settlements
        .iter()
        .map(|settlement| settlement.fence)
        .filter(|held| !done.contains_key(&held.execution_id.get()))
        .collect();
    let locked = if untouched.is_empty() {
        HashSet::new()
    } else {
        find_still_held_on(on.executor(), &untouched).await?
    };
    Ok(settlements
        .iter()
        .map(|settlement| {
            let id = settlement.fence.execution_id;
            done.remove(&id.get()).unwrap_or(if locked.contains(&id) {
                SettleOutcome::Locked
            } else {
                SettleOutcome::Fenced
            })
        })
        .collect())
}

/// Records a success on the task's own connection, within its open transaction. `now()` would be the transaction's
/// beginning, so the statement reads the clock itself.
pub(crate) async fn settle_on(
    connection: &mut PgConnection,
    settlement: &Settlement,
) -> Result<SettleOutcome, sqlx::Error> {
    let rows = run(&mut *connection, std::slice::from_ref(settlement), true, None).await?;
    if rows.is_empty() {
        if find_still_held_on(&mut *connection, &[settlement.fence]).await?.is_empty() {
            return Ok(SettleOutcome::Fenced);
        }
        let replaced = is_replaced(connection, settlement.fence.execution_id).await?;
        return Ok(if replaced { SettleOutcome::Replaced } else { SettleOutcome::Locked });
    }
    Ok(SettleOutcome::Done { state: State::Succeeded, unpublished: None })
}

/// Returns whether a newer firing has replaced the execution, which is final.
async fn is_replaced(connection: &mut PgConnection, id: ExecutionId) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"-- is_replaced
        SELECT EXISTS (SELECT FROM sexton.executions WHERE id = $1 AND replaced_by IS NOT NULL) AS "is!""#,
        id.get()
    )
    .fetch_one(connection)
    .await
}

/// `with_effects`: the attempts' effects are committed with their success. A replaced execution is then not written
/// at all, because a record of its end would commit them.
async fn run(
    executor: impl PgExecutor<'_>,
    settlements: &[Settlement],
    with_effects: bool,
    now: Now,
) -> Result<Vec<TicketRow>, sqlx::Error> {
    let each = || settlements.iter();
    let ids: Vec<Uuid> = each().map(|s| s.fence.execution_id.get()).collect();
    let attempts: Vec<i32> = each().map(|s| s.fence.attempt.get()).collect();
    let tokens: Vec<Uuid> = each().map(|s| s.fence.token.get()).collect();
    let states: Vec<String> = each().map(|s| verdict_columns(&s.verdict).0.to_owned()).collect();
    let waits: Vec<i64> = each().map(|s| verdict_columns(&s.verdict).1).collect();
    let used = |count: fn(&Usage) -> u32| -> Vec<Option<i32>> {
        each().map(|s| verdict_columns(&s.verdict).2.map(|used| count(&used) as i32)).collect()
    };
    let (retries, timeouts) = (used(|used| used.retries), used(|used| used.timeouts));
    let (crashes, snoozes) = (used(|used| used.crashes), used(|used| used.snoozes));
    let outcomes: Vec<String> = each().map(|s| s.outcome.to_owned()).collect();
    let classes: Vec<Option<String>> =
        each().map(|s| s.error.as_ref().map(|e| e.0.clone())).collect();
    let messages: Vec<Option<String>> =
        each().map(|s| s.error.as_ref().map(|e| e.1.clone())).collect();
    let fingerprints: Vec<Option<String>> = each().map(failure_fingerprint).collect();
    let codes: Vec<Option<i32>> = each().map(|s| s.exit_code).collect();
    let signals: Vec<Option<i32>> = each().map(|s| s.signal).collect();
    let none = OutputPart::default();
    let output = each().map(|s| (s.fence.execution_id.get(), s.output.as_ref().unwrap_or(&none)));
    let output = Columns::of(output);
    let results: Vec<Option<Value>> = each().map(|s| s.result.clone()).collect();
    sqlx::query_as!(
        TicketRow,
        r#"-- settle_attempts
        WITH r AS (
            SELECT * FROM unnest($1::uuid[], $2::int[], $3::uuid[], $4::text[], $5::bigint[],
                                 $6::int[], $7::int[], $8::text[], $9::text[], $10::text[],
                                 $11::int[], $12::int[], $13::jsonb[], $14::jsonb[], $17::int[],
                                 $18::bigint[], $19::bigint[], $28::int[], $30::text[])
                 AS r (id, attempt, token, state, wait_ms, retries, crashes, outcome, class, message,
                       exit_code, signal, progress, result, timeouts, above, below, snoozes, fingerprint)),
        l AS MATERIALIZED (
            SELECT r.id, r.attempt, r.token, r.state, r.wait_ms, r.retries, r.crashes, r.exit_code,
                   r.signal, r.progress, r.result, r.timeouts, r.above, r.below, r.snoozes,
                   r.fingerprint, e.worker_id, e.lease_ms,
                   coalesce(e.started_at, e.claimed_at) AS started_at,
                   -- What was replaced does not succeed, however well its task has ended.
                   CASE WHEN e.replaced_by IS NOT NULL
                          OR r.state <> 'succeeded' AND e.cancel_requested THEN 'cancelled'
                        ELSE r.state END AS becomes,
                   CASE WHEN x.replaced THEN 'replaced' ELSE r.outcome END AS outcome,
                   CASE WHEN x.replaced THEN 'replaced' ELSE r.class END AS class,
                   CASE WHEN x.replaced THEN format('a newer firing of its job took its place: execution %s',
                                                    e.replaced_by)
                        ELSE r.message END AS message
            FROM sexton.executions e JOIN r ON r.id = e.id
            CROSS JOIN LATERAL (SELECT e.replaced_by IS NOT NULL
                                       AND r.outcome IN ('succeeded', 'cancelled') AS replaced) x
            WHERE e.attempt = r.attempt AND e.open_token = r.token AND e.state = 'running'
              -- It names the settlement, so that no plan asks for the flows of other rows.
              AND CASE WHEN e.open_token = r.token THEN e.flow_id IS NULL OR sexton.lock_flow(e.flow_id) ELSE false END
              AND NOT ($29 AND e.replaced_by IS NOT NULL)
            ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED),
        u AS (
            UPDATE sexton.executions e SET
                state = l.becomes, rev = e.rev + 1,
                attempt = e.attempt + CASE WHEN l.becomes IN ('retrying', 'failed') THEN 1 ELSE 0 END,
                worker_id = NULL, open_token = NULL, lease_until = NULL, lease_ms = NULL,
                next_attempt_at = CASE WHEN l.becomes = 'retrying'
                    THEN coalesce($15, statement_timestamp()) + l.wait_ms * interval '1 millisecond' END,
                finished_at = CASE WHEN l.becomes <> 'retrying' THEN coalesce($15, statement_timestamp()) END,
                ticket_published_at = CASE WHEN l.becomes IN ('retrying', 'failed') THEN NULL
                    ELSE e.ticket_published_at END,
                relay_after = coalesce($15, statement_timestamp()) + $16 * interval '1 millisecond',
                retries_used = coalesce(l.retries, e.retries_used),
                timeouts_used = coalesce(l.timeouts, e.timeouts_used),
                crashes_used = coalesce(l.crashes, e.crashes_used),
                snoozes_used = coalesce(l.snoozes, e.snoozes_used),
                cancel_requested = e.cancel_requested AND l.becomes = 'cancelled',
                outcome = l.outcome,
                skip_reason = CASE WHEN l.becomes = 'skipped' THEN coalesce(l.message, l.outcome) END,
                error_class = CASE WHEN l.becomes <> 'skipped' THEN l.class END,
                fingerprint = CASE WHEN l.becomes = 'failed' THEN l.fingerprint END,
                error_message = CASE WHEN l.becomes = 'skipped' THEN NULL WHEN l.becomes <> 'failed' OR l.crashes = e.crashes_used
                    THEN l.message ELSE left(l.message, 250) || (
                        SELECT format('; %s crashed, no more are allowed: ', l.crashes) || string_agg(
                            format('attempt %s %s on %s, begun %s%s', t.number,
                                   replace(t.outcome, '_', ' '),
                                   coalesce(i.name, t.worker_id::text),
                                   to_char(t.opened_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'),
                                   ', signal ' || t.signal),
                            '; ' ORDER BY t.number)
                        FROM (SELECT l.attempt AS number, l.outcome AS outcome, l.worker_id, l.started_at AS opened_at,
                                     l.signal AS signal
                              UNION ALL
                              SELECT c.number, c.outcome, c.worker_id, c.opened_at, c.signal FROM sexton.attempts c
                              WHERE c.execution_id = l.id AND c.number <> l.attempt
                                AND c.outcome IN ('lost', 'out_of_memory')
                              ORDER BY number DESC LIMIT least(l.crashes, 5)) t
                        LEFT JOIN sexton.instances i ON i.id = t.worker_id) END,
                result = CASE WHEN l.becomes = 'succeeded' THEN l.result END
            FROM l WHERE e.id = l.id RETURNING e.*),
        a AS (
            INSERT INTO sexton.attempts AS t (execution_id, number, worker_id, lease_ms, opened_at, finished_at,
                                       outcome, error_class, error_message, exit_code, signal, result, progress)
            SELECT l.id, l.attempt, l.worker_id, l.lease_ms, l.started_at, coalesce($15, statement_timestamp()),
                   l.outcome, l.class, l.message, l.exit_code, l.signal, l.result, l.progress
            FROM l
            ON CONFLICT (execution_id, number) DO UPDATE SET finished_at = EXCLUDED.finished_at,
                outcome = EXCLUDED.outcome, error_class = EXCLUDED.error_class,
                error_message = EXCLUDED.error_message, exit_code = EXCLUDED.exit_code, signal = EXCLUDED.signal,
                result = EXCLUDED.result, progress = coalesce(EXCLUDED.progress, t.progress)
            WHERE t.outcome IS NULL),
        c AS (
            INSERT INTO sexton.attempt_output (execution_id, number, first_line, lines, bytes_before, bytes,
                                        from_at, to_at, content)
            SELECT l.id, l.attempt, c.first_line, c.lines, c.bytes_before, c.bytes, c.from_at, c.to_at,
                   c.content
            FROM l JOIN unnest($20::uuid[], $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[],
                               $25::timestamptz[], $26::timestamptz[], $27::text[])
                 AS c (id, first_line, lines, bytes_before, bytes, from_at, to_at, content)
                 ON c.id = l.id
            ON CONFLICT DO NOTHING),
        d AS (
            DELETE FROM sexton.attempt_output o USING l
            WHERE o.execution_id = l.id AND o.number = l.attempt
              AND o.first_line > l.above AND o.first_line < l.below)
        SELECT u.id AS "id!", u.job_id AS "job_id!", coalesce(j.deleted_name, j.name) AS "job_name!", u.attempt AS "attempt!",
               u.rev AS "rev!", u.state AS "state!", u.pool AS "pool!", u.task_type AS "task_type!",
               u.target, u.params AS "params!", u.execution_key AS "execution_key!",
               u.idempotency_key AS "idempotency_key!", u.scheduled_for AS "scheduled_for!",
               u.next_attempt_at, u.finished_at, u.error_message, u.retries_used AS "retries_used!",
               u.traceparent, u.tracestate,
               coalesce($15, statement_timestamp()) AS "now!"
        FROM u JOIN sexton.jobs j ON j.id = u.job_id"#,
        &ids,
        &attempts,
        &tokens,
        &states,
        &waits,
        &retries as &[Option<i32>],
        &crashes as &[Option<i32>],
        &outcomes,
        &classes as &[Option<String>],
        &messages as &[Option<String>],
        &codes as &[Option<i32>],
        &signals as &[Option<i32>],
        &output.progress as &[Option<Value>],
        &results as &[Option<Value>],
        now,
        RELAY_DELAY_MS as f64,
        &timeouts as &[Option<i32>],
        &output.above as &[Option<i64>],
        &output.below as &[Option<i64>],
        &output.ids,
        &output.first_lines,
        &output.lines,
        &output.bytes_before,
        &output.bytes,
        &output.from,
        &output.to,
        &output.contents as &[&str],
        &snoozes as &[Option<i32>],
        with_effects,
        &fingerprints as &[Option<String>]
    )
    .fetch_all(executor)
    .await
}

/// Records a fenced worker's result beside the outcome that was recorded in its absence. For people only: it decides
/// nothing. Returns whether this worker had such an attempt, which another process ended differently; a repeated
/// settlement after a lost answer is not late.
pub async fn record_late(
    store: &Store,
    worker: ProcessId,
    held: AttemptFence,
    outcome: &str,
    now: Now,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "-- record_late
        UPDATE sexton.attempts SET late_outcome = $4, late_at = coalesce($5, now())
        WHERE execution_id = $1 AND number = $2 AND worker_id = $3 AND late_outcome IS NULL
          AND outcome <> $4",
        held.execution_id.get(),
        held.attempt.get(),
        worker.get(),
        outcome,
        now
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Returns the recorded outcome of this worker's attempt; `None` if it is open, or belongs to another worker.
pub async fn recorded_outcome(
    store: &Store,
    worker: ProcessId,
    held: AttemptFence,
) -> Result<Option<String>, StoreError> {
    let outcome = sqlx::query_scalar!(
        "-- recorded_outcome
        SELECT outcome FROM sexton.attempts WHERE execution_id = $1 AND number = $2 AND worker_id = $3",
        held.execution_id.get(),
        held.attempt.get(),
        worker.get()
    )
    .fetch_optional(store.with_timeout())
    .await?;
    Ok(outcome.flatten())
}

/// Returns an execution's state.
pub async fn find_state(store: &Store, id: ExecutionId) -> Result<Option<State>, StoreError> {
    let text = sqlx::query_scalar!(
        "-- state_of\nSELECT state FROM sexton.executions WHERE id = $1",
        id.get()
    )
    .fetch_optional(store.with_timeout())
    .await?;
    text.map(|text| parse_column("executions.state", &text, State::parse)).transpose()
}
