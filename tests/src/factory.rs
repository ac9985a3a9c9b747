//! Rows in any state, as the protocol would have left them.
//!
//! A test of one step begins with a row in the state that the step needs. These rows satisfy every
//! constraint of the schema, and the test chooses their instants.

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use sexton_model::id::{ExecutionId, JobId, ProcessId};
use sexton_model::state::State;
use sqlx::PgPool;
use uuid::{Builder, Uuid};

/// A version 7 id of an instant: retention finds old rows by their ids.
pub fn id_at(at: DateTime<Utc>) -> Uuid {
    let drawn = Uuid::new_v4().into_bytes();
    let mut random = [0; 10];
    random.copy_from_slice(&drawn[..10]);
    // Unwrap safety: tests live after 1970.
    let millis = u64::try_from(at.timestamp_millis()).expect("an instant after 1970");
    Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

/// A job to insert.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Unique; also where the default idempotency key comes from.
    pub name: String,
    /// `cron`, `every`, `once` or `none`.
    pub kind: &'static str,
    /// The kind's expression; written unchanged, however wrong.
    pub expression: Option<String>,
    /// The task type, as in a worker's catalogue.
    pub task_type: String,
    /// Written unchanged.
    pub params: Value,
    /// Written unchanged.
    pub pool: String,
    /// `allow`, `skip`, `queue` or `replace`.
    pub overlap: &'static str,
    /// `skip`, `fire_once` or `fire_all`.
    pub misfire: &'static str,
    /// The cursor: the next firing.
    pub next_fire_at: Option<DateTime<Utc>>,
}

impl NewJob {
    /// An active job without a schedule.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: "none",
            expression: None,
            task_type: "work".to_owned(),
            params: json!({}),
            pool: "default".to_owned(),
            overlap: "allow",
            misfire: "fire_once",
            next_fire_at: None,
        }
    }

    /// Sets a cron expression and the next firing.
    #[must_use]
    pub fn cron(self, expression: &str, next_fire_at: DateTime<Utc>) -> Self {
        let expression = Some(expression.to_owned());
        Self { kind: "cron", expression, next_fire_at: Some(next_fire_at), ..self }
    }

    /// Inserts the job.
    pub async fn insert(&self, pool: &PgPool) -> Result<JobId> {
        let id = Uuid::now_v7();
        sqlx::query(
            "INSERT INTO sexton.jobs (id, name, schedule_kind, schedule_expression, task_type, params, pool,
                               overlap, misfire_policy, misfire_window_ms, misfire_limit, timeout_ms,
                               next_fire_at, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 86400000, 100, 60000, $10, now(), now())",
        )
        .bind(id)
        .bind(&self.name)
        .bind(self.kind)
        .bind(&self.expression)
        .bind(&self.task_type)
        .bind(&self.params)
        .bind(&self.pool)
        .bind(self.overlap)
        .bind(self.misfire)
        .bind(self.next_fire_at)
        .execute(pool)
        .await?;
        Ok(JobId::new(id))
    }
}

/// An execution to insert.
#[derive(Clone, Debug)]
pub struct NewExecution {
    /// The job, whose task type, pool and target are copied.
    pub job: JobId,
    /// All columns that belong to the state follow from it: a finished one finished at `at`, a
    /// running one was opened then, a waiting one is due then.
    pub state: State,
    /// When it was claimed; the other instants derive from it.
    pub at: DateTime<Utc>,
    /// The nominal time; `at` unless changed.
    pub scheduled_for: DateTime<Utc>,
    /// The number of the next or open attempt.
    pub attempt: i32,
    /// Its key; `None` generates one.
    pub key: Option<String>,
    /// Whether the key is a caller's own.
    pub own_key: bool,
    /// When its ticket was published; `None` while it is unpublished.
    pub published: Option<DateTime<Utc>>,
    /// How long a running attempt's lease lasts from `at` on.
    pub lease: TimeDelta,
    /// The used part of the crash budget.
    pub crashes_used: i32,
    /// Whether an operator has requested the end of the open attempt.
    pub cancel_requested: bool,
    /// The params as claimed.
    pub params: Value,
}

impl NewExecution {
    /// An execution in `state` at `at`, attempt 1, with an unpublished ticket.
    pub fn new(job: JobId, state: State, at: DateTime<Utc>) -> Self {
        Self {
            job,
            state,
            at,
            scheduled_for: at,
            attempt: 1,
            key: None,
            own_key: false,
            published: None,
            lease: TimeDelta::seconds(20),
            crashes_used: 0,
            cancel_requested: false,
            params: json!({}),
        }
    }

    /// Publishes its ticket at its instant.
    #[must_use]
    pub fn published(self) -> Self {
        Self { published: Some(self.at), ..self }
    }

    /// Sets another attempt number.
    #[must_use]
    pub fn attempt(self, attempt: i32) -> Self {
        Self { attempt, ..self }
    }

    /// Inserts the execution, with an open attempt if it is running.
    pub async fn insert(&self, pool: &PgPool) -> Result<ExecutionId> {
        let id = id_at(self.at);
        let key = self.key.clone().unwrap_or_else(|| format!("test-{id}"));
        let running = self.state == State::Running;
        let waiting = matches!(self.state, State::Pending | State::Retrying);
        let worker = running.then(|| ProcessId::new(Uuid::new_v4()).get());
        let skipped = self.state == State::Skipped;
        sqlx::query(
            "INSERT INTO sexton.executions (id, job_id, execution_key, own_key, scheduled_for, state,
                attempt, task_type, pool, target, params, idempotency_key, claimed_by, claimed_at,
                ticket_published_at, relay_after, next_attempt_at, crashes_used, started_at,
                finished_at, worker_id, open_token, lease_until, lease_ms, cancel_requested, outcome,
                error_class, error_message, skip_reason)
             SELECT $1, j.id, $3, $4, $5, $6, $7, j.task_type, j.pool, j.target, $8,
                j.name || ':' || $3, 'test:1', $9, $10, $9, CASE WHEN $11 THEN $9 END, $12,
                CASE WHEN $13::uuid IS NOT NULL THEN $9 END,
                CASE WHEN NOT $11 AND $13::uuid IS NULL THEN $9 END,
                $13, CASE WHEN $13::uuid IS NOT NULL THEN $14 END,
                CASE WHEN $13::uuid IS NOT NULL THEN $15 END,
                CASE WHEN $13::uuid IS NOT NULL THEN $18::bigint END, $16,
                CASE WHEN $6 = 'failed' THEN 'error' END, CASE WHEN $6 = 'failed' THEN 'exit_1' END,
                CASE WHEN $6 = 'failed' THEN 'it said no' END,
                CASE WHEN $17 THEN 'overlap' END
             FROM sexton.jobs j WHERE j.id = $2",
        )
        .bind(id)
        .bind(self.job.get())
        .bind(&key)
        .bind(self.own_key)
        .bind(self.scheduled_for)
        .bind(self.state.as_str())
        .bind(self.attempt)
        .bind(&self.params)
        .bind(self.at)
        .bind(self.published)
        .bind(waiting)
        .bind(self.crashes_used)
        .bind(worker)
        .bind(Uuid::new_v4())
        .bind(self.at + self.lease)
        .bind(self.cancel_requested)
        .bind(skipped)
        .bind(self.lease.num_milliseconds())
        .execute(pool)
        .await?;
        Ok(ExecutionId::new(id))
    }
}
