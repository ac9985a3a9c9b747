//! Runs a task type as a handler of this program.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sexton_store::task::{Reaction, TaskDatabase};
use tokio::runtime::Handle;
use tokio::task::JoinError;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::completion::HandlerSuccess;
use super::context::{Ctx, StopCause};
use super::error::HandlerError;
use super::panic::{PanicCapture, capture_panics};
use super::stop_signal::StopSignal;
use super::transaction::TransactionManager;
use super::{AnyHandler, PANIC};
use crate::executor::sql;
use crate::executor::{Executor, Outcome, SuccessRecord, TaskControl, TaskEnd, TaskRun, WallClock};
use crate::output::{Recorder, Stream};

/// How long a dropped handler may take before a warning that it blocks its thread.
const ABORT_WARNING_DELAY: Duration = Duration::from_secs(1);
/// Interval of that warning.
const ABORT_WARNING_INTERVAL: Duration = Duration::from_mins(1);
/// The longest timeout or grace that is applied; a longer one counts as none.
const MAX_DURATION: Duration = Duration::from_hours(365 * 24);

/// State that all handlers of a worker share.
pub(crate) struct HandlerHost {
    /// The runtime on whose threads handlers run.
    pub(crate) runtime: Handle,
    /// The database of their transactions; `None`, as in tests: they cannot begin any.
    pub(crate) database: Option<TaskDatabase>,
    /// Dates their output.
    pub(crate) clock: WallClock,
}

/// The executor of a task type that is a handler.
pub(crate) struct HandlerExecutor {
    host: Arc<HandlerHost>,
    handler: AnyHandler,
    grace: Duration,
}

/// The stop of a handler that has not ended yet.
#[derive(Clone, Copy)]
struct PendingStop {
    cause: StopCause,
    /// The end of its grace.
    until: Instant,
}

impl PendingStop {
    /// Waits until the grace is over or the lease is lost. Cancel-safe.
    async fn wait_for_grace_end(&self, stop_signal: &mut StopSignal) {
        tokio::select! {
            biased;
            () = stop_signal.wait_for_grace_end() => {}
            () = sleep_until(self.until) => {}
        }
    }
}

type Ended = Result<Result<HandlerSuccess, HandlerError>, JoinError>;
type Running = AbortOnDropHandle<Result<HandlerSuccess, HandlerError>>;

impl HandlerExecutor {
    pub(crate) fn new(host: Arc<HandlerHost>, handler: AnyHandler, grace: Duration) -> Self {
        Self { host, handler, grace }
    }

    /// Records a stop that begins now.
    fn stopped(&self, cause: StopCause) -> PendingStop {
        PendingStop { cause, until: Instant::now() + self.grace.min(MAX_DURATION) }
    }

    /// Waits for the handler's end and returns it, with the stop that came before it, if any.
    async fn supervise(
        &self,
        mut running: Running,
        ctx: &Ctx,
        transactions: &TransactionManager,
        stop_signal: &mut StopSignal,
    ) -> (Ended, Option<PendingStop>) {
        let cause = tokio::select! {
            ended = &mut running => return (ended, None),
            cause = stop_signal.stop() => cause,
        };
        let stopped = self.stopped(cause);
        ctx.stop(cause);
        tokio::select! {
            biased;
            ended = &mut running => return (ended, Some(stopped)),
            () = stopped.wait_for_grace_end(stop_signal) => {}
        }
        transactions.cut_short();
        running.abort();
        let mut patience = ABORT_WARNING_DELAY;
        loop {
            if let Ok(ended) = timeout(patience, &mut running).await {
                return (ended, Some(stopped));
            }
            patience = ABORT_WARNING_INTERVAL;
            tracing::error!(
                "{ctx:?} cannot be stopped, though {cause}: it, or others that hold all threads, do not \
                 come to wait anywhere; its attempt stays open and its slot taken until then. Put what \
                 blocks a thread into spawn_blocking"
            );
        }
    }

    /// Prepares the transaction of a handler that succeeded for the record, and returns the end.
    ///
    /// This checks deferred constraints, which can take as long as other work: a stop still arrives meanwhile,
    /// with the remaining grace.
    async fn succeeded(
        &self,
        into_success: HandlerSuccess,
        mut stopped: Option<PendingStop>,
        mut stop_signal: StopSignal,
    ) -> TaskEnd {
        let HandlerSuccess { transaction, result } = into_success;
        let mut end = TaskEnd { result, ..TaskEnd::new(Outcome::Succeeded) };
        let Some(mut transaction) = transaction else { return end };
        let sealed = tokio::select! {
            biased;
            cause = self.cut_short(&mut stopped, &mut stop_signal) => Err(cause),
            sealed = transaction.seal() => Ok(sealed),
        };
        match sealed {
            Ok(Ok(())) => end.success_record = SuccessRecord::InTransaction(transaction),
            Ok(Err(failure)) => {
                transaction.rollback().await;
                // A failure that the next attempt would meet again outweighs the stop.
                let stopped = stopped.filter(|_| failure.reaction != Reaction::GiveUp);
                let failed = || sql::failure_outcome(failure, false);
                return TaskEnd::new(stopped.map_or_else(failed, |it| it.cause.outcome()));
            }
            Err(cause) => {
                transaction.kill().await;
                return TaskEnd::new(cause.outcome());
            }
        }
        end
    }

    /// Waits until the running work must be dropped, and returns the cause; records a stop when it arrives.
    async fn cut_short(
        &self,
        stopped: &mut Option<PendingStop>,
        stop_signal: &mut StopSignal,
    ) -> StopCause {
        let stop = match *stopped {
            Some(stop) => stop,
            None => *stopped.insert(self.stopped(stop_signal.stop().await)),
        };
        stop.wait_for_grace_end(stop_signal).await;
        if stop_signal.lease_is_lost() { StopCause::LeaseLost } else { stop.cause }
    }
}

#[async_trait]
impl Executor for HandlerExecutor {
    async fn run(&self, task: &TaskRun, control: TaskControl) -> TaskEnd {
        let timeout_at = Instant::now() + task.timeout.min(MAX_DURATION);
        let recorder = control.output().clone();
        let host = &*self.host;
        let transactions = Arc::new(TransactionManager::new(host.database.clone(), task.timeout));
        let clock = Arc::clone(&host.clock);
        let ctx = Ctx::new(task, timeout_at, recorder.clone(), clock, Arc::clone(&transactions));
        let panic_capture = PanicCapture::default();
        let call = capture_panics(
            panic_capture.clone(),
            self.handler.call(ctx.clone(), task.params.clone()),
        );
        let running = AbortOnDropHandle::new(host.runtime.spawn(call));
        let mut stop_signal = StopSignal::new(control, timeout_at);
        let (ended, stopped) = self.supervise(running, &ctx, &transactions, &mut stop_signal).await;
        // The dropped transactions are rolled back before another attempt may begin one.
        transactions.close().await;
        let outcome_for = |by_itself| stopped.map_or(by_itself, |stop| stop.cause.outcome());
        let ended = match ended {
            Ok(Ok(into_success)) => Ok(into_success),
            // After a stop only the fact of the failure counts, and the stop's cause is recorded.
            Ok(Err(error)) => Err(outcome_for(error.outcome())),
            Err(error) => Err(outcome_for(match error.try_into_panic() {
                Ok(payload) => {
                    let outcome = panicked(&panic_capture, &*payload, &recorder, &ctx);
                    // The payload's destructor is the handler's code, too, and may block or panic.
                    drop(host.runtime.spawn(async move { drop(payload) }));
                    outcome
                }
                // Without a stop, only the shutdown of the worker drops a handler.
                Err(_) => Outcome::Interrupted,
            })),
        };
        let ended = match (ended, transactions.ended_by_handler()) {
            (Ok(_), _) if stop_signal.lease_is_lost() => Err(Outcome::LeaseLost),
            // Another attempt would repeat what the handler has committed.
            (ended, Some(failure)) if ended.is_ok() || stopped.is_none() => {
                Err(sql::failure_outcome(failure, false))
            }
            (ended, _) => ended,
        };
        let end = match ended {
            Ok(into_success) => {
                if into_success.transaction.is_none() && transactions.has_begun() {
                    warn_of_uncompleted_transaction(task, &recorder, &ctx);
                }
                self.succeeded(into_success, stopped, stop_signal).await
            }
            Err(outcome) => TaskEnd::new(outcome),
        };
        TaskEnd { output: recorder.finish(), ..end }
    }
}

/// Warns that a handler succeeded but its transaction was rolled back: usually the handler returns `Ok(())`
/// instead of `Ok(ctx.complete_in(tx))`.
fn warn_of_uncompleted_transaction(task: &TaskRun, recorder: &Recorder, ctx: &Ctx) {
    let message = "it began a transaction and succeeded without `ctx.complete_in(tx)`: nothing of what it \
                did in there has happened";
    recorder.push(Stream::Stderr, ctx.now(), format!("{message}\n").as_bytes());
    tracing::warn!(
        job.name = task.job,
        execution.id = %task.execution_id,
        attempt.number = task.attempt,
        "attempt {} of {}: {message}",
        task.attempt,
        task.job
    );
}

/// Translates a panic into an outcome. Its backtrace, if `RUST_BACKTRACE` enables it, is kept as output.
fn panicked(
    panic_capture: &PanicCapture,
    payload: &(dyn Any + Send),
    recorder: &Recorder,
    ctx: &Ctx,
) -> Outcome {
    let (message, panic) = panic_capture.take(payload);
    let output = format!("{message}\n{}", panic.backtrace.unwrap_or_default());
    recorder.push(Stream::Stderr, ctx.now(), output.as_bytes());
    Outcome::Failed { class: PANIC.to_owned(), message }
}
