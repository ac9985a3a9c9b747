//! Tests a handler without servers, with a clock that the test controls.
//!
//! ```
//! use serde_json::json;
//! use sexton_worker::{Ctx, HandlerError};
//! use sexton_worker::testing::{self, Outcome};
//!
//! async fn double(_: Ctx, n: u32) -> Result<u32, HandlerError> {
//!     n.checked_mul(2).ok_or_else(|| HandlerError::permanent("too large"))
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let ran = testing::run(double).params(json!(21)).attempt(2).await;
//! assert_eq!((ran.outcome, ran.result), (Outcome::Succeeded, Some(json!(42))));
//!
//! let ran = testing::run(double).params(json!("many")).await;
//! assert!(matches!(ran.outcome, Outcome::Permanent { class, .. } if class == "invalid_params"));
//! # });
//! ```
//!
//! The same code as in a worker runs the handler: it reads the params, stops and drops the handler, catches
//! panics, checks the result and masks the output. Only what follows from the end is left out.
//!
//! # The clock
//!
//! Time is that of tokio. In a test under `#[tokio::test(start_paused = true)]` (tokio's feature `test-util`),
//! it is frozen while the handler works and leaps while all wait, so a test of a timeout of an hour takes no
//! time; `tokio::time::advance` moves it by hand. [`Ctx::now`](crate::Ctx::now) and the deadline follow, from
//! the instant that [`HandlerTest::at`] sets.
//!
//! # Transactions
//!
//! Only a real database can show whether statements are right, and there is no mock. So
//! [`Ctx::begin`](crate::Ctx::begin) fails (permanently, with this reason) unless the test names a PostgreSQL
//! with [`HandlerTest::database`], which need not be one of the platform's. The test can read there what the
//! handler did and completed; it is rolled back when the [`TestOutcome`] is dropped. No test covers what a
//! worker adds, the record of the success in the same transaction; the platform's own tests do.
//!
//! ```no_run
//! # use serde_json::json;
//! # use sexton_worker::{Completion, Ctx, HandlerError, sqlx, testing};
//! # async fn charge(ctx: Ctx, _: serde_json::Value) -> Result<Completion, HandlerError> {
//! #     let tx = ctx.begin().await?;
//! #     Ok(ctx.complete_in(tx))
//! # }
//! # async fn example() -> Result<(), sqlx::Error> {
//! let url = "postgres://localhost/of_my_tests";
//! let mut ran = testing::run(charge).params(json!({"account": 1, "cents": 5})).database(url).await;
//! let tx = ran.transaction().expect("it completed in a transaction");
//! let left: i64 = sqlx::query_scalar("SELECT cents FROM accounts").fetch_one(tx).await?;
//! # let _ = left;
//! # Ok(())
//! # }
//! ```
//!
//! # From a producer's test
//!
//! With the feature `client-testing`, `run_enqueued` makes the attempt of an execution that the test has enqueued before:
//! what the producer wrote is what the handler reads, idempotency key included.

#[cfg(feature = "client-testing")]
mod enqueued;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sexton_store::task::{TaskDatabase, TaskTransaction};
use sexton_store::{Store, StoreOptions};
use sqlx::postgres::PgConnection;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

#[cfg(feature = "client-testing")]
pub use self::enqueued::run_enqueued;
pub use sexton_model::progress::Progress;
use sexton_model::result::check;

use crate::attempt::outcome::masked_outcome;
pub use crate::executor::Outcome;
use crate::executor::{
    Executor as _, HostInstant, StopReason, SuccessRecord, TaskEnd, TaskRun, TaskSupervisor,
};
use crate::handler::{AnyHandler, GRACE_DEFAULT, Handler, HandlerExecutor, HandlerHost, StopCause};
use crate::output::{Output, Recorder};

/// A lease that does not run out.
const LONG_LEASE: Duration = Duration::from_hours(24 * 365);

/// A configured test of a handler; `.await` runs it.
#[derive(Debug)]
#[must_use = "a trial does nothing until it is awaited"]
pub struct HandlerTest {
    handler: AnyHandler,
    task: TaskRun,
    begins: DateTime<Utc>,
    grace: Duration,
    stop: Option<(Duration, StopCause)>,
    database: Option<String>,
}

/// The outcome of a test run.
#[derive(Debug)]
pub struct TestOutcome {
    /// How the handler ended, as a worker would record it: masked, and within the limits.
    pub outcome: Outcome,
    /// The handler's result, masked; `None` also if masking has made it too large to be kept.
    pub result: Option<Value>,
    /// The logged lines, masked, each without its end; also a panic's message, and a warning of a transaction
    /// that the handler began and did not complete.
    pub lines: Vec<String>,
    /// The last progress that the handler reported.
    pub progress: Option<Progress>,
    /// How long the handler ran, by tokio's clock.
    pub took: Duration,
    transaction: Option<TaskTransaction>,
}

/// Creates a test of `handler`: attempt 1 of the job `test.job`, without params, with an hour until its
/// timeout.
pub fn run<P, H>(handler: H) -> HandlerTest
where
    P: DeserializeOwned + Send + 'static,
    H: Handler<P>,
{
    let task = TaskRun {
        execution_id: Uuid::from_u128(1),
        attempt: 1,
        job: "test.job".to_owned(),
        target: None,
        execution_key: "test".to_owned(),
        scheduled_for: DateTime::UNIX_EPOCH,
        deadline: DateTime::UNIX_EPOCH,
        idempotency_key: "test.job:test".to_owned(),
        params: json!({}),
        timeout: Duration::from_hours(1),
        trace: None,
    };
    HandlerTest {
        handler: AnyHandler::new(handler),
        task,
        begins: DateTime::UNIX_EPOCH,
        grace: GRACE_DEFAULT,
        stop: None,
        database: None,
    }
}

impl HandlerTest {
    /// Sets the params.
    pub fn params(mut self, params: Value) -> Self {
        self.task.params = params;
        self
    }

    /// Sets the attempt's number, from 1.
    pub fn attempt(mut self, number: u32) -> Self {
        self.task.attempt = number;
        self
    }

    /// Sets the instant of the start, which is also the nominal time unless another [is
    /// given](Self::scheduled_for).
    pub fn at(mut self, instant: DateTime<Utc>) -> Self {
        (self.begins, self.task.scheduled_for) = (instant, instant);
        self
    }

    /// Sets the nominal time. Call it after [`Self::at`].
    pub fn scheduled_for(mut self, instant: DateTime<Utc>) -> Self {
        self.task.scheduled_for = instant;
        self
    }

    /// Sets the job's name.
    pub fn job(mut self, name: &str) -> Self {
        name.clone_into(&mut self.task.job);
        self
    }

    /// Sets the job's target.
    pub fn target(mut self, target: &str) -> Self {
        self.task.target = Some(target.to_owned());
        self
    }

    /// Sets the idempotency key.
    pub fn idempotency_key(mut self, key: &str) -> Self {
        key.clone_into(&mut self.task.idempotency_key);
        self
    }

    /// Sets the time until the handler is stopped.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.task.timeout = timeout;
        self
    }

    /// Sets the time from the stop until the handler is dropped; 5 s by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Stops the handler after this time, with this cause.
    pub fn stop_after(mut self, time: Duration, cause: StopCause) -> Self {
        self.stop = Some((time, cause));
        self
    }

    /// Lets the handler begin transactions in this PostgreSQL: `postgres://user:password@host:port/database`.
    /// Do not use it in a test whose time is paused, which would leap while the server works.
    pub fn database(mut self, url: &str) -> Self {
        self.database = Some(url.to_owned());
        self
    }

    async fn run_test(mut self) -> TestOutcome {
        let began = Instant::now();
        let begins = self.begins;
        let clock = Arc::new(move || after(begins, began.elapsed()));
        if let Some((time, StopCause::TimedOut)) = self.stop {
            self.task.timeout = time;
        }
        self.task.deadline = after(begins, self.task.timeout);
        let database = self.database.as_deref().map(open);
        let host = HandlerHost { runtime: Handle::current(), database, clock };
        let executor = HandlerExecutor::new(Arc::new(host), self.handler, self.grace);
        let recorder = Recorder::default();
        let lease = HostInstant::now() + LONG_LEASE;
        let (supervisor, control) = TaskSupervisor::with_recorder(lease, recorder.clone());
        let stopping = async {
            let reason = match self.stop {
                Some((_, StopCause::Cancelled)) => StopReason::Cancelled,
                Some((_, StopCause::Interrupted)) => StopReason::Interrupted,
                Some((_, StopCause::LeaseLost)) => StopReason::LeaseLost,
                Some((_, StopCause::TimedOut)) | None => return std::future::pending().await,
            };
            sleep(self.stop.map_or(Duration::ZERO, |(time, _)| time)).await;
            supervisor.stop(reason);
            std::future::pending::<std::convert::Infallible>().await
        };
        let end = tokio::select! {
            end = executor.run(&self.task, control) => end,
            never = stopping => match never {},
        };
        test_outcome(end, &recorder, began.elapsed())
    }
}

impl IntoFuture for HandlerTest {
    type Output = TestOutcome;
    type IntoFuture = Pin<Box<dyn Future<Output = TestOutcome> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run_test())
    }
}

impl TestOutcome {
    /// Returns the transaction in which the handler completed, after its last statement and before the commit;
    /// `None` if it did not. Queries in it see what the handler did. It is rolled back when this is dropped.
    pub fn transaction(&mut self) -> Option<&mut PgConnection> {
        self.transaction.as_deref_mut()
    }
}

/// Returns the instant `time` later, or the last that exists if that is too late.
fn after(instant: DateTime<Utc>, time: Duration) -> DateTime<Utc> {
    let time = TimeDelta::from_std(time).unwrap_or(TimeDelta::MAX);
    instant.checked_add_signed(time).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// Opens one connection for transactions, as each attempt has in a worker.
///
/// # Panics
///
/// If the URL cannot be read, which is a mistake in the test.
fn open(url: &str) -> TaskDatabase {
    let options = StoreOptions { pool_size: 1, ..StoreOptions::new(url, "sexton handler test") };
    Store::open(&options)
        .and_then(|store| TaskDatabase::open(&options, &store))
        .unwrap_or_else(|error| panic!("the test's database: {error}"))
}

fn test_outcome(end: TaskEnd, recorder: &Recorder, took: Duration) -> TestOutcome {
    let part = recorder.final_part();
    let output = Output::of(part.chunks.iter().map(Arc::as_ref)).unwrap_or_default();
    let result = end.result.map(|result| recorder.masked_result(result));
    TestOutcome {
        outcome: masked_outcome(end.outcome, |text| recorder.masked(text)),
        result: result.filter(|result| check(result).is_ok()),
        lines: output.lines.into_iter().map(|line| line.text).collect(),
        progress: part.progress.and_then(|progress| serde_json::from_value(progress).ok()),
        took,
        transaction: match end.success_record {
            SuccessRecord::InTransaction(transaction) => Some(transaction),
            SuccessRecord::Separate | SuccessRecord::Unknown => None,
        },
    }
}

#[cfg(test)]
mod tests;
