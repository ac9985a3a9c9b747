//! The seam between an attempt and the thing that runs its task.
//!
//! The attempt's owner gives a [`TaskRun`] (what to run) and a [`TaskControl`] (how long it may go
//! on) to an [`Executor`] and receives a [`TaskEnd`]. Executors know nothing of the protocol
//! and decide nothing about retries: they say what happened, and whether trying again can help.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_store::task::TaskTransaction;
use tokio::sync::watch;
use uuid::Uuid;

pub use crate::guard::HostInstant;
use crate::instance_lock::InstanceLockFile;
use crate::output::{Output, Recorder};

/// Tells the wall-clock time; the binary hands in the real one.
pub type WallClock = Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>;

/// Runs tasks of one type.
#[async_trait]
pub trait Executor: Send + Sync {
    /// Runs one attempt to its end.
    ///
    /// Never fails: whatever goes wrong is a [`TaskEnd`]. It returns soon after `control` says stop
    /// or the lease is over, and when it has returned, nothing of the task runs any more (a process
    /// stuck in the kernel excepted).
    ///
    /// # Cancellation and crashes
    ///
    /// Dropping the future stops the task at once, and so does the death of the process.
    async fn run(&self, task: &TaskRun, control: TaskControl) -> TaskEnd;
}

/// One attempt at a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRun {
    /// The execution that this is an attempt of.
    pub execution_id: Uuid,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// The job's name.
    pub job: String,
    /// What the job is about, if it names something.
    pub target: Option<String>,
    /// The execution's key within its job.
    pub execution_key: String,
    /// The nominal time of the firing.
    pub scheduled_for: DateTime<Utc>,
    /// When the timeout will be over, by the wall clock; told to the task for its own planning.
    pub deadline: DateTime<Utc>,
    /// The same over all attempts, retries and requeues of the execution.
    pub idempotency_key: String,
    /// The task's parameters.
    pub params: Value,
    /// How long the task may run before it is stopped.
    pub timeout: Duration,
}

/// Why the attempt's owner stops a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Someone asked for the execution to be cancelled.
    Cancelled,
    /// The worker shuts down and has no more time to give.
    Interrupted,
    /// The attempt is not this worker's any more. Always at once: another may be running already.
    LeaseLost,
}

/// The word to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopOrder {
    /// Why.
    pub reason: StopReason,
    /// Whether the task is denied the grace to clear up after itself.
    pub at_once: bool,
}

impl StopOrder {
    /// Both orders in one: the first reason stays, except that a lost lease outranks everything;
    /// haste is never taken back.
    fn merge(self, later: Self) -> Self {
        let lost = later.reason == StopReason::LeaseLost;
        let reason = if lost { later.reason } else { self.reason };
        Self { reason, at_once: self.at_once || later.at_once }
    }
}

/// The owner's end: says how long a task may go on, and when it must stop.
#[derive(Debug)]
pub struct TaskSupervisor(watch::Sender<SupervisorState>);

/// The executor's end of a [`TaskSupervisor`], and where it writes what the task says.
#[derive(Debug)]
pub struct TaskControl {
    state: watch::Receiver<SupervisorState>,
    recorder: Recorder,
    instance_lock: Option<InstanceLockFile>,
}

#[derive(Debug, Clone, Copy)]
struct SupervisorState {
    lease: HostInstant,
    stop: Option<StopOrder>,
}

impl TaskSupervisor {
    /// Both ends, for a task whose lease lasts until `lease` unless it is renewed.
    ///
    /// `lease` already has the margin taken off: the task is killed at that very instant. If the
    /// supervisor is dropped, the task goes on until then.
    pub fn new(lease: HostInstant) -> (Self, TaskControl) {
        Self::with_recorder(lease, Recorder::default())
    }

    /// The same; what the task says goes to `recorder`.
    pub fn with_recorder(lease: HostInstant, recorder: Recorder) -> (Self, TaskControl) {
        let (sender, state) = watch::channel(SupervisorState { lease, stop: None });
        (Self(sender), TaskControl { state, recorder, instance_lock: None })
    }

    /// Moves the lease's end after a renewal.
    pub fn extend_lease(&self, lease: HostInstant) {
        self.0.send_modify(|state| state.lease = lease);
    }

    /// Stops the task: SIGTERM, the grace, SIGKILL; at once if the lease is lost.
    pub fn stop(&self, reason: StopReason) {
        self.order(StopOrder { reason, at_once: reason == StopReason::LeaseLost });
    }

    /// Stops the task without grace; also after [`stop`](Self::stop), to hurry it.
    pub fn stop_at_once(&self, reason: StopReason) {
        self.order(StopOrder { reason, at_once: true });
    }

    fn order(&self, order: StopOrder) {
        self.0.send_modify(|state| {
            state.stop = Some(state.stop.map_or(order, |earlier| earlier.merge(order)));
        });
    }
}

impl TaskControl {
    /// The lease's present end.
    pub fn lease(&self) -> HostInstant {
        self.state.borrow().lease
    }

    /// The word to stop, if it was given.
    pub fn stop_order(&self) -> Option<StopOrder> {
        self.state.borrow().stop
    }

    /// Hands over what keeps the worker's seat until everything of the task is gone.
    pub(crate) fn with_instance_lock(self, instance_lock: Option<InstanceLockFile>) -> Self {
        Self { instance_lock, ..self }
    }

    /// What keeps the worker's seat, for whatever outlives the task.
    pub(crate) fn instance_lock(&self) -> Option<InstanceLockFile> {
        self.instance_lock.clone()
    }

    /// Where to write what the task says, after telling it which values to mask.
    pub fn output(&self) -> &Recorder {
        &self.recorder
    }

    /// Waits until the lease or the order to stop changes; for ever if nobody can change them.
    ///
    /// Cancellation safe: a change that was not waited for to the end is reported next time.
    pub async fn changed(&mut self) {
        if self.state.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// How an attempt's task ended.
#[derive(Debug)]
pub struct TaskEnd {
    /// What it means.
    pub outcome: Outcome,
    /// The exit code, if a process exited.
    pub exit_code: Option<i32>,
    /// The signal, if one ended a process.
    pub signal: Option<i32>,
    /// What it wrote, but for what was stored while it ran. For whoever runs a task without a worker: the
    /// record takes it from the [`Recorder`].
    pub output: Output,
    /// What it hands back, whatever the outcome. Left out of the record, with a warning, where it does
    /// not hold what [`sexton_model::result`] asks: at most 64 KiB of JSON, 64 levels, no U+0000.
    pub result: Option<Value>,
    /// Whether the task had a part in recording it.
    pub success_record: SuccessRecord,
}

/// How the record of a task's success and its effects belong together.
#[derive(Debug, Default)]
pub enum SuccessRecord {
    /// Not at all: the effects have happened, the record follows.
    #[default]
    Separate,
    /// In this transaction, sealed: the success is recorded in it, or it is rolled back with the effects.
    /// Only with [`Outcome::Succeeded`].
    InTransaction(TaskTransaction),
    /// The task may have recorded its success itself. If it has, whatever else it ended with is void.
    Unknown,
}

impl TaskEnd {
    /// An end of which nothing is known but what it means; the rest is set by name:
    /// `TaskEnd { exit_code: Some(0), ..TaskEnd::new(Outcome::Succeeded) }`.
    pub fn new(outcome: Outcome) -> Self {
        let output = Output::default();
        let success_record = SuccessRecord::Separate;
        Self { outcome, exit_code: None, signal: None, output, result: None, success_record }
    }
}

/// What a task's end means. One variant for each way in which it is settled.
///
/// `class` groups failures of a kind (`exit_3`); `message` is for people and bounded in length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done.
    Succeeded,
    /// The task asks to be tried again later.
    Retry {
        /// Kind of failure.
        class: String,
        /// What it said.
        message: String,
        /// The shortest wait that it wishes for; the retry policy's is taken if that is longer.
        after: Option<Duration>,
    },
    /// The task says that it is too early and asks to be run later. Costs nothing.
    Snoozed {
        /// How much later, from its end; 1 s to 7 days, what is outside becomes the nearest.
        after: Duration,
    },
    /// The task says that trying again cannot help.
    Permanent {
        /// Kind of failure.
        class: String,
        /// What it said.
        message: String,
    },
    /// An ordinary error; trying again may help.
    Failed {
        /// Kind of failure.
        class: String,
        /// What it said.
        message: String,
    },
    /// A signal that was none of ours ended it (a crash, the OOM killer).
    Signalled {
        /// The signal's number.
        signal: i32,
        /// What it said.
        message: String,
    },
    /// It was killed because it used more memory than it may, or than the system had.
    OutOfMemory {
        /// Whose limit it was.
        message: String,
    },
    /// It ran for longer than its timeout and was stopped.
    TimedOut,
    /// It was stopped because the execution is to be cancelled.
    Cancelled,
    /// It was stopped because the attempt is no longer this worker's; nothing is to be recorded.
    LeaseLost,
    /// It was stopped because the worker shuts down.
    Interrupted,
    /// It was never started.
    CouldNotStart {
        /// Why not.
        message: String,
        /// Whether trying again may help.
        retryable: bool,
    },
    /// Its guard vanished, so it was killed without a word about how far it came.
    GuardLost {
        /// What was seen.
        message: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supervised() -> (TaskSupervisor, TaskControl) {
        TaskSupervisor::new(HostInstant::from_nanos(1))
    }

    #[test]
    fn the_first_reason_stays_and_a_lost_lease_outranks_it() {
        let (supervisor, control) = supervised();
        supervisor.stop(StopReason::Cancelled);
        supervisor.stop_at_once(StopReason::Interrupted);
        let hurried = StopOrder { reason: StopReason::Cancelled, at_once: true };
        assert_eq!(control.stop_order(), Some(hurried));
        supervisor.stop(StopReason::LeaseLost);
        supervisor.stop(StopReason::Cancelled);
        let lost = StopOrder { reason: StopReason::LeaseLost, at_once: true };
        assert_eq!(control.stop_order(), Some(lost));
    }

    #[tokio::test]
    async fn news_wakes_the_executor() {
        let (supervisor, mut control) = supervised();
        supervisor.extend_lease(HostInstant::from_nanos(2));
        control.changed().await;
        assert_eq!(control.lease(), HostInstant::from_nanos(2));
        supervisor.stop(StopReason::Interrupted);
        control.changed().await;
        assert!(control.stop_order().is_some_and(|order| !order.at_once));
    }
}
