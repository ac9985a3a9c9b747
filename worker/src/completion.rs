//! The record of a success in the transaction that bears the task's effects.
//!
//! ```text
//! statement ── settle (last statement, fenced) ── commit
//! ```
//!
//! All or nothing: a settlement that is fenced or comes after a newer firing took the execution's place, a refused commit and a crash at any place roll the effects back. If
//! the answer to the commit is lost, the row tells how it went; the task is never run again for it within
//! the same attempt.

use std::time::Duration;

use sexton_service::fault;
use sexton_store::settle::{SettleOutcome, Settlement};
use sexton_store::task::{CommitError, TaskFailure, TaskTransaction};
use tokio::time::{Instant, sleep};

use crate::executor::Outcome;
use crate::sql;

/// For how long a row that somebody else has locked is asked for again.
const LOCKED_RETRY_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two askings; whoever locks such a row does so for one statement.
const LOCKED_RETRY_PAUSE: Duration = Duration::from_millis(5);

/// How it went.
#[derive(Debug)]
pub(crate) enum CompletionOutcome {
    /// Recorded, effects and all.
    Done,
    /// The attempt is not this worker's any more: nothing has happened.
    Fenced,
    /// Refused: nothing has happened, and the attempt ends like this.
    Refused(Outcome),
    /// Nobody answered. If the attempt can still be ended like this, nothing has happened; if it cannot,
    /// it was recorded, or somebody else has ended it.
    Unknown(Outcome),
}

/// Settles in `transaction`, and commits it.
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
            // It may be waiting for its statement still.
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
        Err(CommitError::Unknown(said)) => CompletionOutcome::Unknown(Outcome::Failed {
            class: "commit_lost".to_owned(),
            message: format!("the commit was not confirmed and was not carried out: {said}"),
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
