//! The rows of the database, read after every operation.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::State;
use sqlx::PgPool;
use uuid::Uuid;

use super::stop::Stop;

/// A row of `executions`, with the number of audited operators' actions on it.
#[derive(Clone, Debug, sqlx::FromRow)]
struct Columns {
    id: Uuid,
    job_id: Uuid,
    execution_key: String,
    idempotency_key: String,
    scheduled_for: DateTime<Utc>,
    state: String,
    attempt: i32,
    rev: i32,
    ticket_published_at: Option<DateTime<Utc>>,
    next_attempt_at: Option<DateTime<Utc>>,
    retries_used: i32,
    timeouts_used: i32,
    crashes_used: i32,
    snoozes_used: i32,
    worker_id: Option<Uuid>,
    open_token: Option<Uuid>,
    lease_until: Option<DateTime<Utc>>,
    cancel_requested: bool,
    outcome: Option<String>,
    skip_reason: Option<String>,
    is_backfilled: bool,
    overridden: bool,
    waits: Option<String>,
    admitted_at: Option<DateTime<Utc>>,
    replaced_by: Option<Uuid>,
    params: String,
    asks_about: Option<Uuid>,
    finished_at: Option<DateTime<Utc>>,
    actions: i64,
    earliest: DateTime<Utc>,
}

/// An execution, from its row.
#[expect(clippy::struct_excessive_bools, reason = "columns")]
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: ExecutionId,
    pub(super) job: Uuid,
    pub(super) execution_key: String,
    pub(super) idempotency_key: String,
    pub(super) scheduled_for: DateTime<Utc>,
    pub(super) state: State,
    pub(super) attempt: AttemptNumber,
    pub(super) rev: i32,
    pub(super) published: Option<DateTime<Utc>>,
    pub(super) due: Option<DateTime<Utc>>,
    pub(super) retries_used: i32,
    pub(super) timeouts_used: i32,
    pub(super) crashes_used: i32,
    pub(super) snoozes_used: i32,
    pub(super) worker: Option<Uuid>,
    pub(super) token: Option<Uuid>,
    pub(super) lease_until: Option<DateTime<Utc>>,
    pub(super) cancel_requested: bool,
    pub(super) outcome: Option<String>,
    pub(super) skip_reason: Option<String>,
    pub(super) is_backfilled: bool,
    /// Whether it runs whatever its job's overlap policy says, and does not count for it.
    pub(super) overridden: bool,
    pub(super) waits: Option<String>,
    pub(super) admitted: bool,
    pub(super) replaced_by: Option<Uuid>,
    pub(super) params: String,
    /// The execution that it is a question about; `None` for an ordinary execution.
    pub(super) asks_about: Option<ExecutionId>,
    pub(super) finished_at: Option<DateTime<Utc>>,
    pub(super) actions: i64,
    /// The earliest instant in the row.
    pub(super) earliest: DateTime<Utc>,
    /// By number.
    pub(super) attempts: BTreeMap<i32, Attempt>,
}

/// A row of `attempts`.
#[derive(Clone, PartialEq, Eq, Debug, sqlx::FromRow)]
pub(super) struct Attempt {
    execution_id: Uuid,
    number: i32,
    pub(super) worker_id: Uuid,
    pub(super) opened_at: DateTime<Utc>,
    pub(super) finished_at: Option<DateTime<Utc>>,
    pub(super) outcome: Option<String>,
    pub(super) late_outcome: Option<String>,
    /// The first lines of the chunks of its output.
    pub(super) output: Vec<i64>,
}

impl Row {
    /// Whether the row says that its ticket is in a queue.
    pub(super) fn is_published(&self) -> bool {
        self.state.has_ticket() && self.published.is_some()
    }

    /// Whether it waits until its job is free.
    pub(super) fn is_waiter(&self) -> bool {
        self.state == State::Pending && self.waits.is_some() && !self.admitted
    }

    /// Why it waits or waited.
    pub(super) fn waits_for(&self) -> &str {
        self.waits.as_deref().unwrap_or_default()
    }

    /// Its name in messages.
    pub(super) fn name(&self) -> String {
        format!(
            "{}{} ({} at {}, revision {})",
            if self.asks_about.is_some() { "the question of " } else { "" },
            self.idempotency_key,
            self.state.as_str(),
            self.attempt,
            self.rev
        )
    }
}

/// All executions, in the order of their claims.
pub(super) type Rows = BTreeMap<ExecutionId, Row>;

/// Reads all rows.
pub(super) async fn read(pool: &PgPool) -> Result<Rows, Stop> {
    let executions: Vec<Columns> = sqlx::query_as(
        "SELECT id, job_id, execution_key, idempotency_key, scheduled_for, state, attempt, rev,
                ticket_published_at, next_attempt_at, retries_used, timeouts_used, crashes_used,
                snoozes_used, worker_id, open_token, lease_until, cancel_requested, outcome, skip_reason,
                backfill IS NOT NULL AS is_backfilled, overlap_override IS NOT NULL AS overridden,
                waits, admitted_at, replaced_by, params::text, asks_about, finished_at,
                (SELECT count(*) FROM sexton.operator_actions o WHERE o.execution_id = e.id) AS actions,
                least(claimed_at, ticket_published_at, relay_after, next_attempt_at, started_at,
                      finished_at, lease_until) AS earliest
         FROM sexton.executions e",
    )
    .fetch_all(pool)
    .await?;
    let attempts: Vec<Attempt> = sqlx::query_as(
        "SELECT execution_id, number, worker_id, opened_at, finished_at, outcome, late_outcome,
                array(SELECT o.first_line FROM sexton.attempt_output o
                      WHERE (o.execution_id, o.number) = (a.execution_id, a.number)
                      ORDER BY o.first_line) AS output
         FROM sexton.all_attempts a",
    )
    .fetch_all(pool)
    .await?;
    let mut rows = Rows::new();
    for columns in executions {
        let row = columns.row()?;
        rows.insert(row.id, row);
    }
    for attempt in attempts {
        if let Some(row) = rows.get_mut(&ExecutionId::new(attempt.execution_id)) {
            row.attempts.insert(attempt.number, attempt);
        }
    }
    Ok(rows)
}

impl Columns {
    fn row(self) -> Result<Row, Stop> {
        let state = State::parse(&self.state);
        let attempt = AttemptNumber::new(self.attempt);
        let (Some(state), Some(attempt)) = (state, attempt) else {
            return Err(Stop::broken(format!("a row is {} at {}", self.state, self.attempt)));
        };
        Ok(Row {
            id: ExecutionId::new(self.id),
            job: self.job_id,
            execution_key: self.execution_key,
            idempotency_key: self.idempotency_key,
            scheduled_for: self.scheduled_for,
            state,
            attempt,
            rev: self.rev,
            published: self.ticket_published_at,
            due: self.next_attempt_at,
            retries_used: self.retries_used,
            timeouts_used: self.timeouts_used,
            crashes_used: self.crashes_used,
            snoozes_used: self.snoozes_used,
            worker: self.worker_id,
            token: self.open_token,
            lease_until: self.lease_until,
            cancel_requested: self.cancel_requested,
            outcome: self.outcome,
            skip_reason: self.skip_reason,
            is_backfilled: self.is_backfilled,
            overridden: self.overridden,
            waits: self.waits,
            admitted: self.admitted_at.is_some(),
            replaced_by: self.replaced_by,
            params: self.params,
            asks_about: self.asks_about.map(ExecutionId::new),
            finished_at: self.finished_at,
            actions: self.actions,
            earliest: self.earliest,
            attempts: BTreeMap::new(),
        })
    }
}
