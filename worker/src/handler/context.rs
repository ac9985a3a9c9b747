//! The context that a handler receives: its attempt, the stop, progress, output and transactions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::progress::Progress;
use sexton_service::traces::TraceContext;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::completion::Completion;
use super::error::HandlerError;
use super::transaction::{Transaction, TransactionManager};
use crate::executor::{Outcome, TaskRun, WallClock};
use crate::output::{Recorder, Stream};

/// The attempt for which a handler runs. Cheap to clone.
#[derive(Clone)]
pub struct Ctx(Arc<Attempt>);

/// Why a handler must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// An operator or a program cancelled the execution.
    Cancelled,
    /// The handler has run for longer than its timeout.
    TimedOut,
    /// The worker is shutting down.
    Interrupted,
    /// This worker has lost the attempt's lease; the task has no grace.
    LeaseLost,
}

impl fmt::Display for StopCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "the execution was cancelled",
            Self::TimedOut => "the attempt ran for longer than its timeout",
            Self::Interrupted => "the worker stops",
            Self::LeaseLost => "the attempt's lease is lost",
        })
    }
}

impl StopCause {
    /// Returns the outcome of an attempt that was stopped for this cause.
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Cancelled => Outcome::Cancelled,
            Self::TimedOut => Outcome::TimedOut,
            Self::Interrupted => Outcome::Interrupted,
            Self::LeaseLost => Outcome::LeaseLost,
        }
    }
}

struct Attempt {
    /// The task's description, without its params.
    run: TaskRun,
    timeout_at: Instant,
    token: CancellationToken,
    cause: OnceLock<StopCause>,
    recorder: Recorder,
    clock: WallClock,
    transactions: Arc<TransactionManager>,
}

impl Ctx {
    /// Creates the context of a run that may last until `timeout_at`.
    pub(super) fn new(
        run: &TaskRun,
        timeout_at: Instant,
        recorder: Recorder,
        clock: WallClock,
        transactions: Arc<TransactionManager>,
    ) -> Self {
        let run = TaskRun {
            execution_id: run.execution_id,
            attempt: run.attempt,
            job: run.job.clone(),
            target: run.target.clone(),
            execution_key: run.execution_key.clone(),
            scheduled_for: run.scheduled_for,
            deadline: run.deadline,
            idempotency_key: run.idempotency_key.clone(),
            params: Value::Null,
            timeout: run.timeout,
            trace: run.trace.clone(),
        };
        let (token, cause) = (CancellationToken::new(), OnceLock::new());
        Self(Arc::new(Attempt { run, timeout_at, token, cause, recorder, clock, transactions }))
    }

    /// Returns the idempotency key, the same over all attempts, retries and requeues of the execution. Pass it
    /// on to systems that must not do the work twice.
    pub fn idempotency_key(&self) -> &str {
        &self.0.run.idempotency_key
    }

    /// Returns the id of the attempt's execution.
    pub fn execution_id(&self) -> Uuid {
        self.0.run.execution_id
    }

    /// Returns the attempt's number: at least 1, and higher than that of every earlier attempt.
    pub fn attempt(&self) -> u32 {
        self.0.run.attempt
    }

    /// Returns the attempt's place in a trace, as W3C Trace Context writes it, if the worker traces. Pass it on to systems
    /// that trace, or make it the parent of spans.
    pub fn traceparent(&self) -> Option<String> {
        self.0.run.trace.as_ref().map(TraceContext::traceparent)
    }

    /// Returns the job's name.
    pub fn job(&self) -> &str {
        &self.0.run.job
    }

    /// Returns the job's target, if it has one.
    pub fn target(&self) -> Option<&str> {
        self.0.run.target.as_deref()
    }

    /// Returns the execution key, unique within the job.
    pub fn execution_key(&self) -> &str {
        &self.0.run.execution_key
    }

    /// Returns the nominal time of the firing.
    pub fn scheduled_for(&self) -> DateTime<Utc> {
        self.0.run.scheduled_for
    }

    /// Returns the instant at which the attempt times out, by the worker's clock.
    pub fn deadline(&self) -> DateTime<Utc> {
        self.0.run.deadline
    }

    /// Returns the time until the deadline; zero afterwards.
    pub fn remaining(&self) -> Duration {
        self.0.timeout_at.saturating_duration_since(Instant::now())
    }

    /// Returns the time by the worker's clock; in a test, by the test's clock.
    pub fn now(&self) -> DateTime<Utc> {
        (self.0.clock)()
    }

    /// Returns a token that is cancelled when the handler must stop, for the code that it calls. Cancelling the
    /// token has no effect on the attempt.
    pub fn cancellation(&self) -> CancellationToken {
        self.0.token.child_token()
    }

    /// Waits until the handler must stop, and returns the cause. Cancel-safe.
    pub async fn stopped(&self) -> StopCause {
        self.0.token.cancelled().await;
        // The cause is set before the token is cancelled.
        self.stop_cause().unwrap_or(StopCause::Interrupted)
    }

    /// Returns why the handler must stop; `None`: it may continue.
    pub fn stop_cause(&self) -> Option<StopCause> {
        self.0.cause.get().copied()
    }

    /// Reports the task's progress, which replaces the previous report: per cent from 0 to 100, and values that
    /// the handler chooses.
    ///
    /// ```
    /// # fn example(ctx: sexton_worker::Ctx) {
    /// ctx.progress(40.0, [("records", 1200)]);
    /// # }
    /// ```
    ///
    /// Up to 20 values are kept, numbers and texts, with names of up to 64 characters of `A-Z a-z 0-9 . _ -`, 1
    /// KiB in all. The excess is dropped.
    pub fn progress<'a, V: Into<Value>>(
        &self,
        percent: f64,
        values: impl IntoIterator<Item = (&'a str, V)>,
    ) {
        let values: BTreeMap<_, _> =
            values.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        self.0.recorder.progress(Progress::clamped(percent, values, self.now()));
    }

    /// Reports the progress like [`Self::progress`], without values.
    pub fn percent(&self, percent: f64) {
        self.progress::<Value>(percent, []);
    }

    /// Writes a line to the attempt's output, as a command does to its standard output, with the same limits
    /// and masks.
    pub fn log(&self, line: impl fmt::Display) {
        self.0.recorder.push(Stream::Stdout, self.now(), format!("{line}\n").as_bytes());
    }

    /// Masks this value (4 bytes or more) from now on: in the output, the reason of a failure, the progress and
    /// the result.
    pub fn mask(&self, value: &str) {
        self.0.recorder.mask([value.as_bytes()]);
    }

    /// Begins a transaction in the platform's database, to [complete in](Self::complete_in).
    ///
    /// A statement in it waits 5 s for a lock and runs no longer than the attempt may; the handler can change
    /// both (`SET LOCAL lock_timeout`). The server ends a transaction that is idle for a minute: begin it when
    /// the slow work is done. A worker has one connection for this in each slot, so a handler that holds one
    /// transaction and begins another may wait for 5 s in vain. A handler that begins one and succeeds without
    /// completing in any gets a warning, in its output and in the worker's log.
    ///
    /// # Errors
    ///
    /// A retry, if the database is unavailable. Nothing has happened.
    pub async fn begin(&self) -> Result<Transaction, HandlerError> {
        self.0.transactions.begin().await
    }

    /// Returns the success whose effects are in `transaction`; the handler must return it.
    ///
    /// The attempt's success is recorded in the transaction, then both are committed. So the effects of the
    /// transaction happen exactly once: with the success of one attempt, or not at all. If this worker has lost
    /// the attempt, or the handler has ended the transaction itself (`COMMIT`), the attempt does not succeed.
    pub fn complete_in(&self, transaction: Transaction) -> Completion {
        Completion::in_transaction(transaction)
    }

    /// Stops the handler; the first cause stays.
    pub(super) fn stop(&self, cause: StopCause) {
        let _ = self.0.cause.set(cause);
        self.0.token.cancel();
    }
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx")
            .field("job", &self.0.run.job)
            .field("execution_id", &self.0.run.execution_id)
            .field("attempt", &self.0.run.attempt)
            .finish_non_exhaustive()
    }
}
