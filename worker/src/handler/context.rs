//! What a handler is told, and what it can say.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::progress::Progress;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::completion::Completion;
use super::error::HandlerError;
use super::transaction::{Transaction, TransactionManager};
use crate::executor::{Outcome, TaskRun, WallClock};
use crate::output::{Recorder, Stream};

/// The attempt that a handler runs for. Cheap to clone.
#[derive(Clone)]
pub struct Ctx(Arc<Attempt>);

/// Why a handler is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// Somebody cancelled the execution.
    Cancelled,
    /// It runs for longer than its timeout.
    TimedOut,
    /// The worker stops.
    Interrupted,
    /// The attempt is not this worker's any more. There is no grace then.
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
    /// How an attempt ended that was stopped for it.
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
    /// Without its params.
    run: TaskRun,
    timeout_at: Instant,
    token: CancellationToken,
    cause: OnceLock<StopCause>,
    recorder: Recorder,
    clock: WallClock,
    transactions: Arc<TransactionManager>,
}

impl Ctx {
    /// For a run that may go on until `timeout_at`.
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
        };
        let (token, cause) = (CancellationToken::new(), OnceLock::new());
        Self(Arc::new(Attempt { run, timeout_at, token, cause, recorder, clock, transactions }))
    }

    /// The same over all attempts, retries and requeues of the execution. Pass it on to whoever must not do
    /// a thing twice.
    pub fn idempotency_key(&self) -> &str {
        &self.0.run.idempotency_key
    }

    /// The execution that this is an attempt of.
    pub fn execution_id(&self) -> Uuid {
        self.0.run.execution_id
    }

    /// The attempt's number: 1 or more, higher than that of every attempt before.
    pub fn attempt(&self) -> u32 {
        self.0.run.attempt
    }

    /// The job's name.
    pub fn job(&self) -> &str {
        &self.0.run.job
    }

    /// What the job is about, if it names something.
    pub fn target(&self) -> Option<&str> {
        self.0.run.target.as_deref()
    }

    /// The execution's key, unique for the job.
    pub fn execution_key(&self) -> &str {
        &self.0.run.execution_key
    }

    /// The nominal time of the firing.
    pub fn scheduled_for(&self) -> DateTime<Utc> {
        self.0.run.scheduled_for
    }

    /// When the attempt's timeout will be over, by the worker's clock.
    pub fn deadline(&self) -> DateTime<Utc> {
        self.0.run.deadline
    }

    /// How long it is until then; zero afterwards.
    pub fn remaining(&self) -> Duration {
        self.0.timeout_at.saturating_duration_since(Instant::now())
    }

    /// The time by the worker's clock; in a test, by the test's.
    pub fn now(&self) -> DateTime<Utc> {
        (self.0.clock)()
    }

    /// A token that is cancelled when the handler has to stop; to be handed on. Cancelling it oneself has
    /// no effect on the attempt.
    pub fn cancellation(&self) -> CancellationToken {
        self.0.token.child_token()
    }

    /// Waits until the handler has to stop, and says why. Cancel-safe.
    pub async fn stopped(&self) -> StopCause {
        self.0.token.cancelled().await;
        // Set before the token is cancelled.
        self.stop_cause().unwrap_or(StopCause::Interrupted)
    }

    /// Why the handler has to stop; `None`: it may go on.
    pub fn stop_cause(&self) -> Option<StopCause> {
        self.0.cause.get().copied()
    }

    /// Says how far the task is, in the place of what it said of that before: per cent from 0 to 100, and
    /// values of its choice.
    ///
    /// ```
    /// # fn example(ctx: sexton_worker::Ctx) {
    /// ctx.progress(40.0, [("records", 1200)]);
    /// # }
    /// ```
    ///
    /// Kept are 20 values, named by up to 64 of `A-Z a-z 0-9 . _ -`, numbers and texts, 1 KiB in all. What
    /// does not fit into that is left out.
    pub fn progress<'a, V: Into<Value>>(
        &self,
        percent: f64,
        values: impl IntoIterator<Item = (&'a str, V)>,
    ) {
        let values: BTreeMap<_, _> =
            values.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        self.0.recorder.progress(Progress::clamped(percent, values, self.now()));
    }

    /// [`Self::progress`] without values.
    pub fn percent(&self, percent: f64) {
        self.progress::<Value>(percent, []);
    }

    /// Writes a line of the attempt's output, as a command does on its standard output. It is kept within
    /// the same limits, and masked.
    pub fn log(&self, line: impl fmt::Display) {
        self.0.recorder.push(Stream::Stdout, self.now(), format!("{line}\n").as_bytes());
    }

    /// Masks this value (4 bytes or more) from here on, in the output, the reason of a failure, the
    /// progress and the result.
    pub fn mask(&self, value: &str) {
        self.0.recorder.mask([value.as_bytes()]);
    }

    /// Begins a transaction of the platform's database, to [complete in](Self::complete_in).
    ///
    /// A statement in it waits 5 s for a lock and runs no longer than the attempt may; both can be set
    /// (`SET LOCAL lock_timeout`). The server ends it when nothing was asked of it for a minute: begin it
    /// when the slow work is done. A worker has one connection for this in each slot, so a handler that
    /// holds one transaction and begins another may wait for 5 s in vain. A handler that begins one and
    /// succeeds without completing in any is warned, in its output and in the worker's log.
    ///
    /// # Errors
    ///
    /// A retry: the database cannot be had. Nothing has happened.
    pub async fn begin(&self) -> Result<Transaction, HandlerError> {
        self.0.transactions.begin().await
    }

    /// The success whose effects are in `transaction`, to be returned by the handler.
    ///
    /// The attempt's success is recorded in the transaction, then both are committed. So what the handler
    /// did in it has happened exactly once: with the success of one attempt, or not at all. If the attempt
    /// is not this worker's any more, or the handler has ended the transaction itself (`COMMIT`), the
    /// attempt does not succeed.
    pub fn complete_in(&self, transaction: Transaction) -> Completion {
        Completion::in_transaction(transaction)
    }

    /// Tells the handler to stop; the first cause stays.
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
