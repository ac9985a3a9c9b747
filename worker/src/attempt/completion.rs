//! Records a success in the transaction that holds the task's effects.
//!
//! ```text
//! statement ── settle (last statement, fenced) ── commit
//! ```
//!
//! All or nothing: the effects are rolled back when the settlement is fenced, when a newer firing has replaced
//! the execution, when the commit is refused, and after a crash at any place. If the answer to the commit is
//! lost, the row shows the outcome; the same attempt never runs the task again for that.

use std::time::Duration;

use sexton_service::fault;
use sexton_store::settle::{SettleOutcome, Settlement};
use sexton_store::task::{CommitError, TaskFailure, TaskTransaction};
use tokio::time::{Instant, sleep};

use crate::executor::Outcome;
use crate::executor::sql;

/// How long the statement is retried while another transaction has locked the row.
const LOCKED_RETRY_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between two tries; another transaction locks such a row for one statement only.
const LOCKED_RETRY_PAUSE: Duration = Duration::from_millis(5);

/// The outcome of a completion.
#[derive(Debug)]
pub(crate) enum CompletionOutcome {
    /// The success is recorded, with its effects.
    Done,
    /// This worker has lost the attempt: nothing has happened.
    Fenced,
    /// The database refused it: nothing has happened, and the attempt ends with this outcome.
    Refused(Outcome),
    /// The answer is unknown. If a settlement with this outcome succeeds, nothing had happened; otherwise the
    /// success was recorded, or another process has ended the attempt.
    Unknown(Outcome),
}

/// Settles in `transaction` and commits it.
pub(crate) async fn complete(
    mut transaction: TaskTransaction,
    settlement: &Settlement,
) -> CompletionOutcome {
    match settle(&mut transaction, settlement).await {
        Ok(SettleOutcome::Done { .. }) => {}
        Ok(SettleOutcome::Fenced) => {
            transaction.rollback().await;
            return CompletionOutcome::Fenced;
        }
        Ok(SettleOutcome::Replaced) => {
            transaction.rollback().await;
            return CompletionOutcome::Refused(Outcome::Cancelled);
        }
        Ok(SettleOutcome::Locked) => {
            transaction.rollback().await;
            let class = "lock_not_available".to_owned();
            let message = "the execution's row was locked for too long".to_owned();
            return CompletionOutcome::Refused(Outcome::Failed { class, message });
        }
        Err(failure) => {
            // Its statement may still be running.
            transaction.kill().await;
            return CompletionOutcome::Refused(sql::failure_outcome(failure, false));
        }
    }
    fault::point("worker.sql_settled");
    match transaction.commit().await {
        Ok(()) => {
            fault::point("worker.sql_committed");
            CompletionOutcome::Done
        }
        Err(CommitError::RolledBack(failure)) => {
            CompletionOutcome::Refused(sql::failure_outcome(failure, false))
        }
        Err(CommitError::Unknown(error)) => CompletionOutcome::Unknown(Outcome::Failed {
            class: "commit_lost".to_owned(),
            message: format!("the commit was not confirmed and was not carried out: {error}"),
        }),
    }
}

async fn settle(
    transaction: &mut TaskTransaction,
    settlement: &Settlement,
) -> Result<SettleOutcome, TaskFailure> {
    let end = Instant::now() + LOCKED_RETRY_TIMEOUT;
    loop {
        match transaction.settle(settlement).await? {
            SettleOutcome::Locked if Instant::now() < end => sleep(LOCKED_RETRY_PAUSE).await,
            settled => return Ok(settled),
        }
    }
}
