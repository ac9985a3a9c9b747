//! Helpers for the tests of programs that enqueue (feature `testing`).
//!
//! ```no_run
//! use serde::{Deserialize, Serialize};
//! use sexton_client::{Job, testing};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Charge {
//!     order: i64,
//!     cents: i64,
//! }
//!
//! impl Job for Charge {
//!     const NAME: &'static str = "billing.charge";
//! }
//!
//! # async fn place_order(_: &mut sqlx::PgConnection, _: i64) -> Result<i64, sexton_client::Error> { Ok(1) }
//! # async fn test(pool: &sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
//! let mut tx = pool.begin().await?;
//! let order = place_order(&mut tx, 4_900).await?;
//! let charges = testing::enqueued::<Charge>(&mut tx).await?;
//! let charge = charges.require_one(|charge| charge.params.order == order);
//! assert_eq!((charge.params.cents, charge.key.as_str()), (4_900, "order-1"));
//! assert_eq!(charges.due_at(charge.scheduled_for).len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! The database and its functions are real: these helpers read what the functions have written, and there is no imitation of
//! them. So the test's database needs the migrations and the jobs (`sexton migrate`, `sexton jobs apply`), and no scheduler
//! may run on it, which would publish what a test commits.
//!
//! # What a test sees
//!
//! What its connection sees. In the transaction that enqueued, also what is not committed yet: roll it back at the end, and
//! the next test finds nothing. What others have committed is listed as well, so look for your own by the params
//! or the key.
//!
//! What was enqueued is what has a caller's key, or one that the functions made: also what an operator triggered with a
//! key, and no firing of a schedule.
//!
//! # Roles
//!
//! The helpers read `sexton.jobs` and `sexton.executions`. An application's role, a member of `sexton_producer`, reads no
//! table. Give the log-in of the tests both: `GRANT sexton_producer, sexton_viewer TO app_test`.
//!
//! # The clock
//!
//! The database decides times: a delay counts from the call by its clock, and no test can set that. What a test can
//! choose is the instant for which it looks: [`EnqueuedList::due_at`] tells what would be due then, by the times that
//! the rows have. It says nothing about when it would start: that takes a scheduler, a free worker, a job that is not
//! paused and, where executions of the job run one at a time, the end of the one before.
//!
//! # Running it
//!
//! [`EnqueuedList::run_now`] and [`EnqueuedList::run_due_at`] hand the typed params to a closure, in the test's own process:
//! without a worker, without RabbitMQ. For a handler of the crate `sexton-worker` its `testing::run_enqueued` (feature
//! `client-testing`) makes a whole attempt of an execution: by the worker's code, with a `Ctx`, an outcome and a clock.

mod execution;
mod list;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use sqlx::PgConnection;
use uuid::Uuid;

pub use self::execution::EnqueuedExecution;
use self::execution::Row;
pub use self::list::EnqueuedList;
use crate::Job;

/// The most executions of a job that one call reads.
pub const MAX_EXECUTIONS: usize = 10_000;
/// The most other jobs that a list names in its messages.
const MAX_OTHER_JOBS: i64 = 20;

/// Why the executions could not be read. After each of them but [`Self::Params`] and [`Self::TooMany`] the test's
/// transaction may be aborted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no such job, so nothing can have been enqueued. Apply it in the test's database, or correct the name.
    #[error("there is no job {0:?} in this database; apply it, or correct the name in the test")]
    UnknownJob(String),
    /// An execution has params that serde does not read as the type. A handler of this type would fail with them, too.
    #[error("the params of {job} {key:?} do not fit the type: {source}; they are {params}")]
    Params {
        /// The job.
        job: String,
        /// The execution's key.
        key: String,
        /// Its params, shortened.
        params: String,
        /// What does not fit.
        source: serde_json::Error,
    },
    /// More than [`MAX_EXECUTIONS`] were enqueued. Use a database with fewer.
    #[error("more than {MAX_EXECUTIONS} executions of {0} are enqueued; use a database with fewer")]
    TooMany(String),
    /// The role may not read the platform's tables (42501).
    #[error(
        "the test's role may not read the platform's tables, and sexton_producer need not: \
         GRANT sexton_viewer to the log-in of the tests ({0})"
    )]
    Forbidden(#[source] sqlx::Error),
    /// The database failed.
    #[error(transparent)]
    Database(sqlx::Error),
}

impl From<sqlx::Error> for ReadError {
    fn from(error: sqlx::Error) -> Self {
        let code = |error: &sqlx::Error| Some(error.as_database_error()?.code()?.into_owned());
        match code(&error).as_deref() {
            Some("42501") => Self::Forbidden(error),
            _ => Self::Database(error),
        }
    }
}

/// Reads what was enqueued of the job `J`, in the order of the calls, in whatever state it is by now.
///
/// Only reads; a future that is dropped leaves nothing behind.
///
/// # Errors
///
/// [`ReadError`]; see there.
pub async fn enqueued<J: Job>(connection: &mut PgConnection) -> Result<EnqueuedList<J>, ReadError> {
    enqueued_of(connection, J::NAME).await
}

/// Reads like [`enqueued`] what was enqueued of a job that has no type of its own; [`serde_json::Value`] reads any
/// params.
///
/// # Errors
///
/// [`ReadError`]; see there.
pub async fn enqueued_of<P: DeserializeOwned>(
    connection: &mut PgConnection,
    job: &str,
) -> Result<EnqueuedList<P>, ReadError> {
    let found: Option<(Uuid, DateTime<Utc>)> = sqlx::query_as(
        "SELECT id, clock_timestamp() FROM sexton.jobs WHERE name = $1 AND deleted_at IS NULL",
    )
    .bind(job)
    .fetch_optional(&mut *connection)
    .await?;
    let Some((id, read_at)) = found else { return Err(ReadError::UnknownJob(job.to_owned())) };
    // Ids are in the order of the calls.
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT id, task_type, target, coalesce(unique_key, execution_key) AS key, execution_key, idempotency_key,
                params, labels, state, attempt, scheduled_for, next_attempt_at
         FROM sexton.executions
         WHERE job_id = $1 AND (own_key OR unique_key IS NOT NULL OR starts_with(execution_key, 'enqueued-'))
         ORDER BY id LIMIT $2",
    )
    .bind(id)
    .bind(MAX_EXECUTIONS as i64 + 1)
    .fetch_all(&mut *connection)
    .await?;
    if rows.len() > MAX_EXECUTIONS {
        return Err(ReadError::TooMany(job.to_owned()));
    }
    let others: Vec<(String, i64)> = sqlx::query_as(
        "SELECT coalesce(j.deleted_name, j.name), count(*)
         FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
         WHERE e.job_id <> $1 AND (e.own_key OR e.unique_key IS NOT NULL OR starts_with(e.execution_key, 'enqueued-'))
         GROUP BY 1 ORDER BY 1 LIMIT $2",
    )
    .bind(id)
    .bind(MAX_OTHER_JOBS)
    .fetch_all(connection)
    .await?;
    let all = rows.into_iter().map(|row| row.typed(job)).collect::<Result<_, _>>()?;
    Ok(EnqueuedList::new(job, all, others, read_at))
}
