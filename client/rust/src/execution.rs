//! What becomes of an execution.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{FromRow, PgConnection};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::Error;

/// The first pause of [`wait_for`].
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// Its longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The state of an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum State {
    /// It waits: for its time, for its job, or for a worker.
    Pending,
    /// A worker runs it.
    Running,
    /// An attempt failed, and the next one is to come.
    Retrying,
    /// It failed for good, and waits for an operator.
    Failed,
    /// An operator gave it up.
    Discarded,
    /// It succeeded.
    Succeeded,
    /// It was cancelled.
    Cancelled,
    /// It came too late to run.
    Skipped,
    /// A state of a later version.
    Other,
}

/// An execution.
#[derive(Clone, PartialEq, Debug, FromRow)]
pub struct Execution {
    /// Its id.
    pub execution_id: Uuid,
    /// Its job's name.
    pub job: String,
    /// Its key.
    pub key: String,
    /// Its state, as [`State`] names it.
    #[sqlx(rename = "state")]
    pub state_name: String,
    /// The number of the attempt that is next, or runs, or was the last.
    pub attempt: i32,
    /// When it was to run.
    pub scheduled_for: DateTime<Utc>,
    /// When the last attempt began.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended or was parked.
    pub finished_at: Option<DateTime<Utc>>,
    /// How the last attempt ended.
    pub outcome: Option<String>,
    /// What its task returned, if it succeeded.
    pub result: Option<Value>,
    /// The class of the last attempt's error.
    pub error_class: Option<String>,
    /// The last attempt's error.
    pub error_message: Option<String>,
}

impl Execution {
    /// Returns its state.
    pub fn state(&self) -> State {
        match self.state_name.as_str() {
            "pending" => State::Pending,
            "running" => State::Running,
            "retrying" => State::Retrying,
            "failed" => State::Failed,
            "discarded" => State::Discarded,
            "succeeded" => State::Succeeded,
            "cancelled" => State::Cancelled,
            "skipped" => State::Skipped,
            _ => State::Other,
        }
    }

    /// Returns whether nothing more happens to it by itself: it has ended, or is parked.
    pub fn is_at_rest(&self) -> bool {
        !matches!(self.state(), State::Pending | State::Running | State::Retrying | State::Other)
    }
}

/// The answer to a cancel.
#[derive(Clone, PartialEq, Eq, Debug, FromRow)]
pub struct Cancelled {
    /// The execution; `None`: none has the key.
    pub execution_id: Option<Uuid>,
    /// Whether this call ended it, or requested that of its worker.
    pub cancelled: bool,
    /// Its state now: `cancelled`, or `running` until its worker has ended it.
    pub state: Option<String>,
}

/// How much work a pool has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Demand {
    /// Due executions that wait for a worker; no more than 100,000 are counted.
    pub waiting: u64,
    /// Running executions.
    pub running: u64,
    /// How long the first of those that wait has waited.
    pub oldest_wait: Duration,
}

/// Why a wait ended without the end of its execution.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// The time is over; the execution goes on.
    #[error("execution {} is still {} after the timeout", .0.execution_id, .0.state_name)]
    TimedOut(Box<Execution>),
    /// There is no such execution: its transaction has not been committed, or retention has removed it.
    #[error(
        "there is no execution {0}; wait for it after the commit of the transaction that enqueued it"
    )]
    Missing(Uuid),
    /// A read failed.
    #[error(transparent)]
    Read(#[from] Error),
}

const COLUMNS: &str = "execution_id, job, key, state, attempt, scheduled_for, started_at, finished_at, outcome, result, \
                       error_class, error_message";

pub(crate) async fn read(
    connection: &mut PgConnection,
    id: Uuid,
) -> Result<Option<Execution>, Error> {
    let statement =
        format!("SELECT {COLUMNS} FROM sexton.execution($1) WHERE execution_id IS NOT NULL");
    let query = sqlx::query_as(sqlx::AssertSqlSafe(statement)).bind(id);
    Ok(query.fetch_optional(connection).await?)
}

pub(crate) async fn read_by_key(
    connection: &mut PgConnection,
    job: &str,
    key: &str,
) -> Result<Option<Execution>, Error> {
    let statement =
        format!("SELECT {COLUMNS} FROM sexton.execution($1, $2) WHERE execution_id IS NOT NULL");
    let query = sqlx::query_as(sqlx::AssertSqlSafe(statement)).bind(job).bind(key);
    Ok(query.fetch_optional(connection).await?)
}

pub(crate) async fn wait_for(
    connection: &mut PgConnection,
    id: Uuid,
    timeout: Duration,
) -> Result<Execution, WaitError> {
    // Of one that is longer than any clock counts, the end never comes.
    let until = Instant::now().checked_add(timeout);
    let mut pause = FIRST_PAUSE;
    loop {
        let seen = read(connection, id).await?.ok_or(WaitError::Missing(id))?;
        if seen.is_at_rest() {
            return Ok(seen);
        }
        let left =
            until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Err(WaitError::TimedOut(Box::new(seen)));
        }
        sleep(pause.min(left)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

pub(crate) async fn demand(connection: &mut PgConnection, pool: &str) -> Result<Demand, Error> {
    let (waiting, running, seconds): (i64, i64, f64) = sqlx::query_as(
        "SELECT waiting, running, extract(epoch FROM oldest_wait)::float8 FROM sexton.demand($1)",
    )
    .bind(pool)
    .fetch_one(connection)
    .await?;
    Ok(Demand {
        waiting: waiting.unsigned_abs(),
        running: running.unsigned_abs(),
        oldest_wait: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
    })
}
