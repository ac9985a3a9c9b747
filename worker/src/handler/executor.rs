//! Running a task type as a handler of this program.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sexton_store::task::{TaskDatabase, TaskTransaction};
use tokio::runtime::Handle;
use tokio::task::JoinError;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::completion::Done;
use super::context::{Ctx, StopCause};
use super::error::HandlerError;
use super::orders::Orders;
use super::panic::{Noticed, noticing};
use super::transaction::Desk;
use super::{AnyHandler, PANIC};
use crate::executor::{Executor, Outcome, Recorded, TaskControl, TaskEnd, TaskRun, WallClock};
use crate::output::{Recorder, Stream};
use crate::sql;

/// How long a dropped handler may take before it is said that it blocks its thread.
const ABORT_PATIENCE: Duration = Duration::from_secs(1);
/// Before that is said again.
const SAY_AGAIN: Duration = Duration::from_mins(1);
/// The longest that a timeout is counted for; a longer one is none.
const LONGEST: Duration = Duration::from_hours(365 * 24);

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

type Ended = Result<Result<Done, HandlerError>, JoinError>;
type Running = AbortOnDropHandle<Result<Done, HandlerError>>;

impl HandlerExecutor {
    pub(crate) fn new(host: Arc<HandlerHost>, handler: AnyHandler, grace: Duration) -> Self {
        Self { host, handler, grace }
    }

    /// The handler's end, and why it was told to stop, if it was before.
    async fn supervise(
        &self,
        mut running: Running,
        ctx: &Ctx,
        desk: &Desk,
        orders: &mut Orders,
    ) -> (Ended, Option<StopCause>) {
        let cause = tokio::select! {
            ended = &mut running => return (ended, None),
            cause = orders.stop() => cause,
        };
        ctx.stop(cause);
        tokio::select! {
            biased;
            () = orders.hurry() => {}
            ended = timeout(self.grace, &mut running) => if let Ok(ended) = ended {
                return (ended, Some(cause));
            },
        }
        desk.cut_short();
        running.abort();
        let mut patience = ABORT_PATIENCE;
        loop {
            if let Ok(ended) = timeout(patience, &mut running).await {
                return (ended, Some(cause));
            }
            patience = SAY_AGAIN;
            tracing::error!(
                "{ctx:?} blocks its thread and cannot be stopped, though {cause}; its attempt stays \
                 open and its slot taken until it waits somewhere. Put what blocks into spawn_blocking"
            );
        }
    }
}

#[async_trait]
impl Executor for HandlerExecutor {
    async fn run(&self, task: &TaskRun, control: TaskControl) -> TaskEnd {
        let timeout_at = Instant::now() + task.timeout.min(LONGEST);
        let recorder = control.output().clone();
        let host = &*self.host;
        let desk = Arc::new(Desk::new(host.database.clone(), task.timeout));
        let clock = Arc::clone(&host.clock);
        let ctx = Ctx::new(task, timeout_at, recorder.clone(), clock, Arc::clone(&desk));
        let noticed = Noticed::default();
        let call = noticing(noticed.clone(), self.handler.call(ctx.clone(), task.params.clone()));
        let running = AbortOnDropHandle::new(host.runtime.spawn(call));
        let mut orders = Orders::new(control, timeout_at);
        let (ended, stopped) = self.supervise(running, &ctx, &desk, &mut orders).await;
        // What it has dropped is taken back before anybody else may begin.
        desk.close().await;
        let ended = match ended {
            Ok(Ok(done)) => Ok(done),
            // After the word to stop it counts only that it did not succeed.
            Ok(Err(error)) => Err(stopped.map_or_else(|| error.outcome(), StopCause::outcome)),
            Err(error) => {
                let by_itself = match error.try_into_panic() {
                    Ok(payload) => panicked(&noticed, &*payload, &recorder, &ctx),
                    // Only the worker's end drops a handler that nobody has told to stop.
                    Err(_) => Outcome::Interrupted,
                };
                Err(stopped.map_or(by_itself, StopCause::outcome))
            }
        };
        let ended = match (ended, desk.ended_by_handler()) {
            // Trying again would do once more what it has committed.
            (Err(_), Some(failure)) if stopped.is_none() => Err(sql::meaning(failure, false)),
            (ended, _) => ended,
        };
        let end = match ended {
            Ok(_) if orders.lease_is_lost() => TaskEnd::new(Outcome::LeaseLost),
            Ok(done) => succeeded(done, orders).await,
            Err(outcome) => TaskEnd::new(outcome),
        };
        TaskEnd { output: recorder.finish(), ..end }
    }
}

/// The end of a handler that succeeded; its transaction is made ready for the record.
async fn succeeded(done: Done, mut orders: Orders) -> TaskEnd {
    let Done { transaction, result } = done;
    let mut end = TaskEnd { result, ..TaskEnd::new(Outcome::Succeeded) };
    let Some(mut transaction) = transaction else { return end };
    let sealed = tokio::select! {
        biased;
        () = orders.hurry() => None,
        sealed = transaction.seal() => Some(sealed),
    };
    match sealed {
        Some(Ok(())) => end.recorded = Recorded::Within(transaction),
        Some(Err(failure)) => {
            transaction.rollback().await;
            return TaskEnd::new(sql::meaning(failure, false));
        }
        None => return cut_short(transaction, &mut orders).await,
    }
    end
}

/// The end of a handler that succeeded too late for its record.
async fn cut_short(transaction: TaskTransaction, orders: &mut Orders) -> TaskEnd {
    transaction.kill().await;
    TaskEnd::new(orders.stop().await.outcome())
}

/// What a panic means. Its backtrace, if one was asked for, is kept as output.
fn panicked(
    noticed: &Noticed,
    payload: &(dyn Any + Send),
    recorder: &Recorder,
    ctx: &Ctx,
) -> Outcome {
    let (message, panic) = noticed.told(payload);
    let told = format!("{message}\n{}", panic.backtrace.unwrap_or_default());
    recorder.push(Stream::Stderr, ctx.now(), told.as_bytes());
    Outcome::Failed { class: PANIC.to_owned(), message }
}
