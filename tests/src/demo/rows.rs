//! The rows that the demo reads, all at once.

use std::collections::BTreeMap;

use anyhow::Result;
use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

/// More executions than a demo can have.
const MAX_ROWS: i64 = 5_000;

/// One execution with its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Execution {
    pub(super) id: Uuid,
    pub(super) job: String,
    pub(super) is_scheduled: bool,
    pub(super) scheduled_for: DateTime<Utc>,
    /// Instance and process, with a colon between.
    pub(super) claimed_by: String,
    pub(super) claimed_at: DateTime<Utc>,
    pub(super) state: String,
    pub(super) next_attempt_at: Option<DateTime<Utc>>,
    pub(super) finished_at: Option<DateTime<Utc>>,
    pub(super) attempts: Vec<Attempt>,
    /// When operators requeued it, in order.
    pub(super) requeued_at: Vec<DateTime<Utc>>,
    /// The operator of the first requeue.
    pub(super) requeued_by: Option<String>,
}

impl Execution {
    /// The instance that claimed it.
    pub(super) fn claimer(&self) -> &str {
        self.claimed_by.split(':').next().unwrap_or_default()
    }
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) number: i32,
    /// The instance's name.
    pub(super) worker: String,
    pub(super) opened_at: DateTime<Utc>,
    pub(super) ended: Option<Ended>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) at: DateTime<Utc>,
    pub(super) outcome: String,
    pub(super) message: Option<String>,
}

/// The numbers of the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub(super) struct Totals {
    pub(super) executions: i64,
    pub(super) attempts: i64,
    pub(super) lost_attempts: i64,
    /// Executions with two attempts open at one instant.
    pub(super) overlapping: i64,
    /// Further rows of the same job and key.
    pub(super) duplicates: i64,
    /// Executions that have neither ended nor been parked.
    pub(super) unended: i64,
    /// Executions in the failed queue.
    pub(super) parked: i64,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    job: String,
    is_scheduled: bool,
    scheduled_for: DateTime<Utc>,
    claimed_by: String,
    claimed_at: DateTime<Utc>,
    state: String,
    next_attempt_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
    requeued_at: Vec<DateTime<Utc>>,
    requeued_by: Option<String>,
    number: Option<i32>,
    worker: Option<String>,
    opened_at: Option<DateTime<Utc>>,
    ended_at: Option<DateTime<Utc>>,
    outcome: Option<String>,
    message: Option<String>,
}

/// Reads every execution. One statement, so that a row and its attempts are of the same instant.
pub(super) async fn executions(pool: &PgPool) -> Result<BTreeMap<Uuid, Execution>> {
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT e.id, j.name AS job, j.schedule_kind <> 'none' AS is_scheduled, e.scheduled_for,
                e.claimed_by, e.claimed_at, e.state, e.next_attempt_at, e.finished_at,
                ARRAY(SELECT o.at FROM sexton.operator_actions o
                      WHERE o.execution_id = e.id AND o.action = 'requeue' ORDER BY o.id)
                    AS requeued_at,
                (SELECT o.actor FROM sexton.operator_actions o
                 WHERE o.execution_id = e.id AND o.action = 'requeue' ORDER BY o.id LIMIT 1)
                    AS requeued_by,
                a.number, coalesce(i.name, a.worker_id::text) AS worker, a.opened_at,
                a.finished_at AS ended_at, a.outcome, a.error_message AS message
         FROM sexton.executions e
         JOIN sexton.jobs j ON j.id = e.job_id
         LEFT JOIN sexton.all_attempts a ON a.execution_id = e.id
         LEFT JOIN sexton.instances i ON i.id = a.worker_id
         ORDER BY e.id, a.number LIMIT $1",
    )
    .bind(MAX_ROWS)
    .fetch_all(pool)
    .await?;
    let mut executions = BTreeMap::new();
    for mut row in rows {
        let attempt = row.attempt();
        let execution = executions.entry(row.id).or_insert_with(|| row.execution());
        execution.attempts.extend(attempt);
    }
    Ok(executions)
}

impl Row {
    fn attempt(&mut self) -> Option<Attempt> {
        let (number, worker) = (self.number?, self.worker.take()?);
        let mut ended = || {
            let (at, outcome) = (self.ended_at?, self.outcome.take()?);
            Some(Ended { at, outcome, message: self.message.take() })
        };
        Some(Attempt { number, worker, opened_at: self.opened_at?, ended: ended() })
    }

    fn execution(self) -> Execution {
        Execution {
            id: self.id,
            job: self.job,
            is_scheduled: self.is_scheduled,
            scheduled_for: self.scheduled_for,
            claimed_by: self.claimed_by,
            claimed_at: self.claimed_at,
            state: self.state,
            next_attempt_at: self.next_attempt_at,
            finished_at: self.finished_at,
            attempts: Vec::new(),
            requeued_at: self.requeued_at,
            requeued_by: self.requeued_by,
        }
    }
}

/// Counts the numbers of the summary.
pub(super) async fn totals(pool: &PgPool) -> Result<Totals> {
    let totals = sqlx::query_as(
        "SELECT (SELECT count(*) FROM sexton.executions) AS executions,
                (SELECT count(*) FROM sexton.all_attempts) AS attempts,
                (SELECT count(*) FROM sexton.all_attempts WHERE outcome = 'lost') AS lost_attempts,
                (SELECT count(DISTINCT a.execution_id) FROM sexton.all_attempts a JOIN sexton.all_attempts b
                     ON b.execution_id = a.execution_id AND b.number > a.number
                    AND b.opened_at < coalesce(a.finished_at, 'infinity')) AS overlapping,
                (SELECT count(*) - count(DISTINCT (job_id, execution_key)) FROM sexton.executions)
                    AS duplicates,
                (SELECT count(*) FROM sexton.executions
                 WHERE state IN ('pending', 'running', 'retrying')) AS unended,
                (SELECT count(*) FROM sexton.executions WHERE state = 'failed') AS parked",
    );
    Ok(totals.fetch_one(pool).await?)
}

/// A job with a cron schedule.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(super) struct CronJob {
    pub(super) name: String,
    pub(super) expression: String,
    /// Every firing up to here has been claimed: a second before the pause, else a second ago.
    pub(super) fired_until: DateTime<Utc>,
}

/// All jobs with a cron schedule.
pub(super) async fn cron_jobs(pool: &PgPool) -> Result<Vec<CronJob>> {
    let jobs = sqlx::query_as(
        "SELECT name, schedule_expression AS expression,
                coalesce(paused_at, clock_timestamp()) - interval '1 s' AS fired_until
         FROM sexton.jobs WHERE schedule_kind = 'cron' ORDER BY name",
    );
    Ok(jobs.fetch_all(pool).await?)
}

/// The database's clock: the only one that decides what is due.
pub(super) async fn clock(pool: &PgPool) -> Result<DateTime<Utc>> {
    Ok(sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(pool).await?)
}
