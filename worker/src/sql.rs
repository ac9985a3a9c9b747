//! Running a task type as one SQL statement on the platform's database.
//!
//! The statement has its effects in the transaction that records the attempt's success, so they happen
//! exactly once, outbox rows that it writes included; see [`sexton_store::task`]. The executor runs it and
//! hands the open transaction over in the [`TaskEnd`]; the attempt's owner settles and commits.
//!
//! Stopped (timeout, cancel, lost lease, shutdown), the session ends in the server and nothing has
//! happened. There is no grace: a statement has nothing to clear up.

use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use sexton_store::task::{
    Arguments, Reaction, TaskDatabase, TaskFailure, TaskLimits, TaskTransaction,
};
use tokio::time::Instant;

use crate::cancellation::wait_for_cancellation;
use crate::executor::{Executor, Outcome, SuccessRecord, TaskControl, TaskEnd, TaskRun};

/// How long a transaction may stand idle. Between its statements there is only the worker's own way to
/// the server, so this ends those of frozen workers, before their lease is over as a rule: what they have
/// locked keeps the next attempt waiting.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// A statement, and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlTask {
    /// One statement; `$1` are the params, `$2` the idempotency key, `$3` the nominal time.
    pub statement: String,
    /// How long it waits for a lock. 1 ms to 1 h, 5 s by default.
    pub lock_timeout: Duration,
    /// How long it may run; `None`: as long as the attempt.
    pub statement_timeout: Option<Duration>,
}

/// Runs one task type as a statement.
#[derive(Debug)]
pub struct SqlExecutor {
    database: TaskDatabase,
    task: SqlTask,
}

impl SqlExecutor {
    /// An executor of `task` on `database`.
    pub fn new(database: TaskDatabase, task: SqlTask) -> Self {
        Self { database, task }
    }

    fn limits(&self, task: &TaskRun) -> TaskLimits {
        let own = self.task.statement_timeout.unwrap_or(task.timeout);
        TaskLimits {
            lock: Some(self.task.lock_timeout),
            statement: Some(own.min(task.timeout)),
            idle: Some(IDLE_TIMEOUT),
        }
    }

    /// The statement, and what has to be in order before the settlement.
    async fn work(
        &self,
        transaction: &mut TaskTransaction,
        task: &TaskRun,
        limits: TaskLimits,
    ) -> Result<Option<serde_json::Value>, Outcome> {
        let arguments = Arguments {
            params: &task.params,
            idempotency_key: &task.idempotency_key,
            scheduled_for: task.scheduled_for,
        };
        let sent = Instant::now();
        let ran = transaction.run(&self.task.statement, arguments).await;
        // The server counts from a later instant, so a statement that it ended earlier was ended by
        // somebody.
        let timed_out = limits.statement.is_some_and(|limit| sent.elapsed() >= limit);
        let result = ran.map_err(|failure| failure_outcome(failure, timed_out))?;
        transaction.seal().await.map_err(|failure| failure_outcome(failure, false))?;
        Ok(result)
    }
}

#[async_trait]
impl Executor for SqlExecutor {
    async fn run(&self, task: &TaskRun, mut control: TaskControl) -> TaskEnd {
        let mut cancelled = pin!(wait_for_cancellation(&mut control, task.timeout));
        let limits = self.limits(task);
        let begun = tokio::select! {
            biased;
            outcome = &mut cancelled => return TaskEnd::new(outcome),
            begun = self.database.begin(limits) => begun,
        };
        let mut transaction = match begun {
            Ok(transaction) => transaction,
            Err(failure) => return TaskEnd::new(failure_outcome(failure, false)),
        };
        let worked = tokio::select! {
            biased;
            outcome = &mut cancelled => {
                transaction.kill().await;
                return TaskEnd::new(outcome);
            }
            worked = self.work(&mut transaction, task, limits) => worked,
        };
        match worked {
            Ok(result) => {
                let success_record = SuccessRecord::InTransaction(transaction);
                TaskEnd { result, success_record, ..TaskEnd::new(Outcome::Succeeded) }
            }
            Err(outcome) => {
                transaction.rollback().await;
                TaskEnd::new(outcome)
            }
        }
    }
}

/// What a failure means for the attempt. `timed_out`: the statement's time was over.
pub(crate) fn failure_outcome(failure: TaskFailure, timed_out: bool) -> Outcome {
    let TaskFailure { reaction, class, message } = failure;
    match reaction {
        Reaction::Stopped if timed_out => Outcome::TimedOut,
        Reaction::Stopped | Reaction::Retry => Outcome::Failed { class, message },
        Reaction::GiveUp => Outcome::Permanent { class, message },
    }
}
