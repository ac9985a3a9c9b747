//! The end of a task's transaction: the settlement, then the commit.

use sqlx::error::DatabaseError;
use tokio::time::timeout;

use super::{STEP_TIMEOUT, TaskFailure, TaskTransaction};
use crate::attempts::settle::{SettleOutcome, Settlement, settle_on};
use crate::connection::timeout::timeout_error;

/// Why a commit was not confirmed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CommitError {
    /// The server refused it; everything was rolled back.
    #[error("{0}")]
    RolledBack(TaskFailure),
    /// No answer arrived: whether it was committed shows in the execution's row, once its lock is released.
    #[error("{0}")]
    Unknown(String),
}

impl TaskTransaction {
    /// Records the attempt's end in the transaction, if it still belongs to its worker. Only [`Self::commit`] may
    /// follow, or, unless the result is [`SettleOutcome::Done`], [`Self::rollback`]; after [`SettleOutcome::Locked`]
    /// the call may be repeated.
    ///
    /// # Errors
    ///
    /// [`TaskFailure`]: roll back.
    pub async fn settle(&mut self, settlement: &Settlement) -> Result<SettleOutcome, TaskFailure> {
        let connection = self.connection()?;
        let settled = timeout(STEP_TIMEOUT, settle_on(connection, settlement)).await;
        settled
            .unwrap_or_else(|_| Err(timeout_error(STEP_TIMEOUT)))
            .map_err(|error| TaskFailure::of(&error))
    }

    /// Commits.
    ///
    /// # Errors
    ///
    /// [`CommitError`].
    ///
    /// # Cancellation and crashes
    ///
    /// The execution's row shows whether it was committed.
    pub async fn commit(mut self) -> Result<(), CommitError> {
        let Some(mut connection) = self.connection.take() else {
            return Err(CommitError::RolledBack(TaskFailure::ended_by_itself()));
        };
        let committed = sqlx::raw_sql("-- commit_task\nCOMMIT").execute(&mut *connection);
        let answer = timeout(STEP_TIMEOUT, committed).await;
        match answer.unwrap_or_else(|_| Err(timeout_error(STEP_TIMEOUT))) {
            Ok(_) => Ok(()),
            Err(error) => {
                connection.close_on_drop();
                // A server that shuts down may have written the commit without confirming it.
                let refused = error.as_database_error().and_then(DatabaseError::code);
                let known =
                    refused.is_some_and(|code| !["08", "57", "58", "XX"].contains(&&code[..2]));
                if known {
                    return Err(CommitError::RolledBack(TaskFailure::of(&error)));
                }
                // A session that never received the commit would keep the row locked.
                self.session.clone().end().await;
                Err(CommitError::Unknown(error.to_string()))
            }
        }
    }
}
