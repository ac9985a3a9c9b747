//! Runs a task type as one SQL statement in the platform's database.
//!
//! The statement takes effect in the transaction that records the attempt's success, so its effects happen
//! exactly once, including outbox rows that it writes; see [`sexton_store::task`]. The executor runs it and
//! passes the open transaction on in the [`TaskEnd`]; the attempt's owner settles and commits.
//!
//! A stop (timeout, cancel, lost lease, shutdown) ends the session in the server, and nothing has happened.
//! There is no grace: a statement has nothing to clear up.

use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use sexton_store::task::{
    Arguments, Reaction, TaskDatabase, TaskFailure, TaskLimits, TaskTransaction,
};
use tokio::time::Instant;

use crate::executor::cancellation::wait_for_cancellation;
use crate::executor::{Executor, Outcome, SuccessRecord, TaskControl, TaskEnd, TaskRun};

/// How long a transaction may be idle. Between its statements there is only the worker's own way to the server,
/// so this ends the transactions of frozen workers, usually before their lease is over: their locks would keep
/// the next attempt waiting.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// A statement and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlTask {
    /// One statement; `$1` are the params, `$2` the idempotency key, `$3` the nominal time.
    pub statement: String,
    /// How long it waits for a lock. 1 ms to 1 h, 5 s by default.
    pub lock_timeout: Duration,
    /// How long it may run; `None`: as long as the attempt.
    pub statement_timeout: Option<Duration>,
}

/// The executor of a task type that is a statement.
#[derive(Debug)]
pub struct SqlExecutor {
    database: TaskDatabase,
    task: SqlTask,
}

impl SqlExecutor {
    /// Creates an executor of `task` on `database`.
    pub fn new(database: TaskDatabase, task: SqlTask) -> Self {
        Self { database, task }
    }

    fn limits(&self, task: &TaskRun) -> TaskLimits {
        let limit = self.task.statement_timeout.unwrap_or(task.timeout);
        TaskLimits {
            lock: Some(self.task.lock_timeout),
            statement: Some(limit.min(task.timeout)),
            idle: Some(IDLE_TIMEOUT),
        }
    }

    /// Runs the statement, and all that must succeed before the settlement.
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
        // The server starts its clock later, so if it ended the statement earlier than this, an operator did.
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

/// Translates a failure into the attempt's outcome. `timed_out`: the statement's time was over.
pub(crate) fn failure_outcome(failure: TaskFailure, timed_out: bool) -> Outcome {
    let TaskFailure { reaction, class, message } = failure;
    match reaction {
        Reaction::Stopped if timed_out => Outcome::TimedOut,
        Reaction::Stopped | Reaction::Retry => Outcome::Failed { class, message },
        Reaction::GiveUp => Outcome::Permanent { class, message },
    }
}
