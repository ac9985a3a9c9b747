//! Running a task type as a handler of this program.

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
use crate::executor::{Executor, Outcome, SuccessRecord, TaskControl, TaskEnd, TaskRun, WallClock};
use crate::output::{Recorder, Stream};
use crate::sql;

/// How long a dropped handler may take before it is said that it blocks its thread.
const ABORT_WARNING_DELAY: Duration = Duration::from_secs(1);
/// Before that is said again.
const ABORT_WARNING_INTERVAL: Duration = Duration::from_mins(1);
/// The longest that a timeout or a grace is counted for; a longer one is none.
const MAX_DURATION: Duration = Duration::from_hours(365 * 24);

/// What all handlers of a worker share.
pub(crate) struct HandlerHost {
    /// Whose threads they run on.
    pub(crate) runtime: Handle,
    /// Where their transactions are; `None`: there is none, as in tests.
    pub(crate) database: Option<TaskDatabase>,
    /// Dates what they say.
    pub(crate) clock: WallClock,
}

/// Runs one task type as a handler.
pub(crate) struct HandlerExecutor {
    host: Arc<HandlerHost>,
    handler: AnyHandler,
    grace: Duration,
}

/// That a handler was told to stop.
#[derive(Clone, Copy)]
struct PendingStop {
    cause: StopCause,
    /// When its grace is over.
    until: Instant,
}

impl PendingStop {
    /// Waits until there is no more time for it, its grace or not. Cancel-safe.
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

    /// Told to stop now.
    fn stopped(&self, cause: StopCause) -> PendingStop {
        PendingStop { cause, until: Instant::now() + self.grace.min(MAX_DURATION) }
    }

    /// The handler's end, and that it was told to stop, if it was before.
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

    /// The end of a handler that succeeded; its transaction is made ready for the record.
    ///
    /// Its deferred constraints are asked then, which is work of its own and may take as long: the word to
    /// stop is heard meanwhile, with what is left of the grace.
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
                // Only of what another try would find again does the failure itself count then.
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

    /// Waits until what is under way must not go on, and says why; notes when it is told to stop.
    async fn cut_short(
        &self,
        stopped: &mut Option<PendingStop>,
        stop_signal: &mut StopSignal,
    ) -> StopCause {
        let told = match *stopped {
            Some(told) => told,
            None => *stopped.insert(self.stopped(stop_signal.stop().await)),
        };
        told.wait_for_grace_end(stop_signal).await;
        if stop_signal.lease_is_lost() { StopCause::LeaseLost } else { told.cause }
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
        // What it has dropped is taken back before anybody else may begin.
        transactions.close().await;
        let why = |by_itself| stopped.map_or(by_itself, |told| told.cause.outcome());
        let ended = match ended {
            Ok(Ok(into_success)) => Ok(into_success),
            // After the word to stop it counts only that it did not succeed.
            Ok(Err(error)) => Err(why(error.outcome())),
            Err(error) => Err(why(match error.try_into_panic() {
                Ok(payload) => {
                    let outcome = panicked(&panic_capture, &*payload, &recorder, &ctx);
                    // Its end is the handler's code, too, which may block or panic.
                    drop(host.runtime.spawn(async move { drop(payload) }));
                    outcome
                }
                // Only the worker's end drops a handler that nobody has told to stop.
                Err(_) => Outcome::Interrupted,
            })),
        };
        let ended = match (ended, transactions.ended_by_handler()) {
            (Ok(_), _) if stop_signal.lease_is_lost() => Err(Outcome::LeaseLost),
            // Trying again would do once more what it has committed.
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

/// Says that nothing is left of what a handler did in its transaction, though it succeeded: as a rule
/// somebody wrote `Ok(())` for `Ok(ctx.complete_in(tx))`.
fn warn_of_uncompleted_transaction(task: &TaskRun, recorder: &Recorder, ctx: &Ctx) {
    let said = "it began a transaction and succeeded without `ctx.complete_in(tx)`: nothing of what it \
                did in there has happened";
    recorder.push(Stream::Stderr, ctx.now(), format!("{said}\n").as_bytes());
    tracing::warn!(
        job.name = task.job,
        execution.id = %task.execution_id,
        attempt.number = task.attempt,
        "attempt {} of {}: {said}",
        task.attempt,
        task.job
    );
}

/// What a panic means. Its backtrace, if one was asked for, is kept as output.
fn panicked(
    panic_capture: &PanicCapture,
    payload: &(dyn Any + Send),
    recorder: &Recorder,
    ctx: &Ctx,
) -> Outcome {
    let (message, panic) = panic_capture.take(payload);
    let told = format!("{message}\n{}", panic.backtrace.unwrap_or_default());
    recorder.push(Stream::Stderr, ctx.now(), told.as_bytes());
    Outcome::Failed { class: PANIC.to_owned(), message }
}
