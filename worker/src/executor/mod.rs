//! Runs tasks: the interface between an attempt and the code that runs its task, and one module for each kind
//! of task in the catalogue.
//!
//! The attempt's owner gives a [`TaskRun`] (what to run) and a [`TaskControl`] (how long it may run) to an
//! [`Executor`] and receives a [`TaskEnd`]. Executors do not know the protocol and decide nothing about
//! retries: they report what happened, and whether a retry can help.

mod cancellation;
pub mod command;
pub mod email;
pub mod http;
pub(crate) mod noop;
pub mod sql;
#[cfg(test)]
pub(crate) mod test_support;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::job::OnLocked;
use sexton_service::traces::TraceContext;
use sexton_store::task::TaskTransaction;
use tokio::sync::watch;
use uuid::Uuid;

pub use crate::guard::HostInstant;
use crate::instance_lock::InstanceLockFile;
use crate::output::{Output, Recorder};

/// The class of the failure of an attempt whose secret could not be read.
pub const SECRET_MISSING: &str = "secret_missing";

/// Returns the wall-clock time; the binary passes the real clock.
pub type WallClock = Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>;

/// Runs tasks of one type.
#[async_trait]
pub trait Executor: Send + Sync {
    /// Runs one attempt to its end.
    ///
    /// Never fails: every error is a [`TaskEnd`]. It returns soon after `control` orders a stop or the lease
    /// ends, and when it has returned, nothing of the task runs any more (except a process stuck in the
    /// kernel).
    ///
    /// # Cancellation and crashes
    ///
    /// Dropping the future stops the task at once, and so does the death of this process.
    async fn run(&self, task: &TaskRun, control: TaskControl) -> TaskEnd;
}

/// The description of one attempt at a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRun {
    /// The attempt's execution.
    pub execution_id: Uuid,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// The job's name.
    pub job: String,
    /// The job's target, if it has one.
    pub target: Option<String>,
    /// The execution key, unique within its job.
    pub execution_key: String,
    /// The nominal time of the firing.
    pub scheduled_for: DateTime<Utc>,
    /// When the attempt times out, by the wall clock; the task receives it for its own planning.
    pub deadline: DateTime<Utc>,
    /// The idempotency key, the same over all attempts, retries and requeues of the execution.
    pub idempotency_key: String,
    /// The task's parameters.
    pub params: Value,
    /// How long the task may run before it is stopped.
    pub timeout: Duration,
    /// The attempt's place in a trace, for what the task calls; `None`: the worker does not trace.
    pub trace: Option<TraceContext>,
}

/// Why the attempt's owner stops a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// An operator or a program cancelled the execution.
    Cancelled,
    /// The worker shuts down, and its grace is over.
    Interrupted,
    /// This worker has lost the attempt, or the job's lock. Such a stop has no grace: another attempt, or another holder
    /// of the lock, may be running already.
    LeaseLost,
}

/// An order to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopOrder {
    /// The reason.
    pub reason: StopReason,
    /// Whether the task gets no grace to clear up.
    pub at_once: bool,
}

impl StopOrder {
    /// Merges two orders: the first reason stays, except that a lost lease outranks every other; an order
    /// without grace stays one.
    fn merge(self, later: Self) -> Self {
        let lost = later.reason == StopReason::LeaseLost;
        let reason = if lost { later.reason } else { self.reason };
        Self { reason, at_once: self.at_once || later.at_once }
    }
}

/// The owner's end: says how long a task may run, and when it must stop.
#[derive(Debug)]
pub struct TaskSupervisor(watch::Sender<SupervisorState>);

/// The executor's end of a [`TaskSupervisor`], with the recorder of the task's output.
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
    /// Creates both ends, for a task whose lease lasts until `lease` unless it is renewed.
    ///
    /// The margin is already subtracted from `lease`: the task is killed at that very instant. If the
    /// supervisor is dropped, the task runs until then.
    pub fn new(lease: HostInstant) -> (Self, TaskControl) {
        Self::with_recorder(lease, Recorder::default())
    }

    /// Creates both ends like [`new`](Self::new); the task's output goes to `recorder`.
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

    /// Stops the task without grace, also if a stop with grace has begun.
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
    /// Returns the lease's present end.
    pub fn lease(&self) -> HostInstant {
        self.state.borrow().lease
    }

    /// Returns the order to stop, if there is one.
    pub fn stop_order(&self) -> Option<StopOrder> {
        self.state.borrow().stop
    }

    /// Adds the lock file that must stay locked until everything of the task has ended.
    pub(crate) fn with_instance_lock(self, instance_lock: Option<InstanceLockFile>) -> Self {
        Self { instance_lock, ..self }
    }

    /// Returns the lock file, for processes that may outlive the worker.
    pub(crate) fn instance_lock(&self) -> Option<InstanceLockFile> {
        self.instance_lock.clone()
    }

    /// Returns the recorder of the task's output. Add the values to mask first.
    pub fn output(&self) -> &Recorder {
        &self.recorder
    }

    /// Waits until the lease or the order to stop changes; for ever once the supervisor is dropped.
    ///
    /// Cancellation safe: a change that occurs while the future is dropped is reported next time.
    pub async fn changed(&mut self) {
        if self.state.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The end of an attempt's task.
#[derive(Debug)]
pub struct TaskEnd {
    /// The outcome.
    pub outcome: Outcome,
    /// The exit code, if a process exited.
    pub exit_code: Option<i32>,
    /// The signal, if one ended a process.
    pub signal: Option<i32>,
    /// The output, without what was stored while the task ran. It is for callers without a worker: the record
    /// takes the output from the [`Recorder`].
    pub output: Output,
    /// The task's result, whatever the outcome. It is left out of the record, with a warning, if it violates
    /// the limits of [`sexton_model::result`]: at most 64 KiB of JSON, 64 levels, no U+0000.
    pub result: Option<Value>,
    /// Whether the task took part in recording its success.
    pub success_record: SuccessRecord,
}

/// How the record of a task's success is tied to its effects.
#[derive(Debug, Default)]
pub enum SuccessRecord {
    /// Not at all: the effects have happened, and the record follows.
    #[default]
    Separate,
    /// This transaction records the success, or is rolled back together with the effects. Only
    /// with [`Outcome::Succeeded`].
    InTransaction(TaskTransaction),
    /// Unknown: the task may have recorded its success itself. If it has, that success replaces every other
    /// end.
    Unknown,
}

impl TaskEnd {
    /// Creates an end with this outcome and nothing else; set the remaining fields by name: `TaskEnd {
    /// exit_code: Some(0), ..TaskEnd::new(Outcome::Succeeded) }`.
    pub fn new(outcome: Outcome) -> Self {
        let output = Output::default();
        let success_record = SuccessRecord::Separate;
        Self { outcome, exit_code: None, signal: None, output, result: None, success_record }
    }
}

/// The outcome of a task, with one variant for each way in which it is settled.
///
/// `class` groups failures of a kind (`exit_3`); `message` is for people and bounded in length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The task has done its work.
    Succeeded,
    /// The task wants to be retried later.
    Retry {
        /// Kind of failure.
        class: String,
        /// The task's message.
        message: String,
        /// The shortest wait; a longer one of the retry policy takes precedence.
        after: Option<Duration>,
    },
    /// The task reports that it is too early and wants to run later. Costs nothing.
    Snoozed {
        /// The wait from the task's end; the nearest value of 1 s to 7 days.
        after: Duration,
    },
    /// The task reports that a retry cannot help.
    Permanent {
        /// Kind of failure.
        class: String,
        /// The task's message.
        message: String,
    },
    /// An ordinary error; a retry may help.
    Failed {
        /// Kind of failure.
        class: String,
        /// The task's message.
        message: String,
    },
    /// A signal that the platform did not send ended it (a crash, the OOM killer).
    Signalled {
        /// The signal's number.
        signal: i32,
        /// The task's message.
        message: String,
    },
    /// It was killed because it exceeded its memory limit, or because the system's memory ran out.
    OutOfMemory {
        /// Which limit was reached.
        message: String,
    },
    /// It ran for longer than its timeout and was stopped.
    TimedOut,
    /// It was stopped because the execution was cancelled.
    Cancelled,
    /// It did not begin, because the job's lock is held elsewhere.
    Locked {
        /// The lock and its holder.
        message: String,
        /// What follows.
        on_locked: OnLocked,
    },
    /// It was stopped because the job's lock is not certain any more.
    LockLost {
        /// Which lock, and why.
        message: String,
    },
    /// It was stopped because this worker has lost the attempt; nothing may be recorded.
    LeaseLost,
    /// It was stopped because the worker shuts down.
    Interrupted,
    /// It was never started.
    CouldNotStart {
        /// The reason.
        message: String,
        /// Whether a retry may help.
        retryable: bool,
    },
    /// Its guard vanished without a report, so the worker killed it.
    GuardLost {
        /// What the worker observed.
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
