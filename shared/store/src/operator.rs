//! An operator's actions on an execution: requeue, discard, restore, cancel.
//!
//! Each call is one transaction: it locks the row (waiting at most 5 s), checks the transition table, writes the row
//! only if it is unchanged since the operator saw it, records who did it and why, and wakes the process that carries
//! it out. A crash before the commit leaves nothing; after it the relay publishes the ticket. Of two operators who
//! act at once, one succeeds and the other gets an error.

mod audit;
mod audit_query;
pub mod chain;
mod frontier;
pub(crate) mod transitions;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::{Cause, State, next};
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use crate::approved::{Claim, end_carried_out};
use crate::attempts::open::parse_attempt_number;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::error::parse_column;
use crate::notifications::Notification;
use crate::{Now, Store, StoreError};

pub(crate) use audit::{
    NewAction, is_lock_timeout, notify, record_actions, record_bulk_actions, record_jobless_action,
    set_lock_timeout,
};
pub use audit::{OperatorAction, list_by_execution, list_by_job};
pub use audit_query::{ActionFilter, PageStart, list_actions};
pub use frontier::{Frontier, first_missing, read_frontier, still_writing};
pub use transitions::RequeueOptions;

/// The operator and the reason, for the audit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuditContext<'a> {
    /// The operator's name in the audit.
    pub actor: &'a str,
    /// The reason given.
    pub reason: Option<&'a str>,
}

/// Why an action was refused.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The execution does not exist.
    #[error("there is no execution {0}")]
    Missing(ExecutionId),
    /// The row's state does not allow this, or its attempt number has changed since the operator saw it.
    #[error("execution {id} is {} at attempt {attempt}", state.as_str())]
    Conflict {
        /// The execution.
        id: ExecutionId,
        /// Its state now.
        state: State,
        /// Its attempt number now.
        attempt: AttemptNumber,
    },
    /// The execution is running, and an earlier request to cancel it is pending.
    #[error("execution {0} has a cancel request already; its worker ends it")]
    CancelAlreadyRequested(ExecutionId),
    /// Somebody has changed its params since the operator saw them.
    #[error("somebody else has edited execution {0} meanwhile; look at it and edit it again")]
    ParamsChanged(ExecutionId),
    /// Another transaction kept the row locked for 5 s. Try again.
    #[error("execution {0} is locked by somebody else; try again")]
    Locked(ExecutionId),
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The result of a cancel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cancelled {
    /// The execution had not started, and has ended.
    Immediately,
    /// The execution runs, and its worker will end it.
    Requested,
}

/// Puts a failed execution back into its queue, with full budgets and the same attempt number: the parked message is
/// the same ticket, and the first copy to arrive runs. If the job's executions run one at a time, the execution waits
/// for its turn, which comes at once if the job is free; copies of its ticket open nothing until then.
///
/// # Errors
///
/// [`OperatorError::Conflict`] unless the row is `failed` at the attempt that was `seen`.
pub async fn requeue(
    store: &Store,
    id: ExecutionId,
    seen: AttemptNumber,
    by: AuditContext<'_>,
    now: Now,
) -> Result<(), OperatorError> {
    requeue_with(store, id, seen, RequeueOptions::default(), by, now).await
}

/// Like [`requeue`], with options: another pool, or without the verify task.
///
/// # Errors
///
/// As [`requeue`].
pub async fn requeue_with(
    store: &Store,
    id: ExecutionId,
    seen: AttemptNumber,
    terms: RequeueOptions<'_>,
    by: AuditContext<'_>,
    now: Now,
) -> Result<(), OperatorError> {
    let mut row = LockedExecution::acquire(store, id, now).await?;
    row.check_transition(Cause::Requeue, Some(seen))?;
    let moved = transitions::requeue(&mut row.tx, &[(id, seen)], terms, row.now, row.now).await?;
    let waits = moved.waits > 0;
    let notification = if waits { Notification::Jobs } else { Notification::TicketsUnpublished };
    row.finish(
        moved.ids.len(),
        "requeue",
        by,
        transitions::after_requeue(terms),
        Some(notification),
    )
    .await
}

/// Gives up a failed execution. It can be restored until retention removes it; the sweep removes its parked message.
///
/// # Errors
///
/// [`OperatorError::Conflict`] unless the row is `failed`.
pub async fn discard(
    store: &Store,
    id: ExecutionId,
    by: AuditContext<'_>,
    now: Now,
) -> Result<(), OperatorError> {
    discard_with(store, id, (None, None), by, now).await
}

/// Like [`discard`], only at the attempt number that was `seen`; with a claim it also ends that request for approval.
///
/// # Errors
///
/// As [`discard`].
pub async fn discard_with(
    store: &Store,
    id: ExecutionId,
    (seen, claim): (Option<AttemptNumber>, Option<Claim>),
    by: AuditContext<'_>,
    now: Now,
) -> Result<(), OperatorError> {
    let mut row = LockedExecution::acquire(store, id, now).await?;
    row.check_transition(Cause::Discard, seen)?;
    let done = transitions::discard(&mut row.tx, &[(id, row.attempt)], row.now).await?;
    if let Some(claim) = claim {
        end_carried_out(&mut row.tx, claim, None, "it is discarded", row.now).await?;
    }
    row.finish(done.len(), "discard", by, json!({"state": "discarded"}), None).await
}

/// Takes a discard back: the execution is failed again, and its parked message is published again.
///
/// # Errors
///
/// [`OperatorError::Conflict`] unless the row is `discarded`.
pub async fn restore(
    store: &Store,
    id: ExecutionId,
    by: AuditContext<'_>,
    now: Now,
) -> Result<(), OperatorError> {
    let mut row = LockedExecution::acquire(store, id, now).await?;
    row.check_transition(Cause::Restore, None)?;
    let done = transitions::restore(&mut row.tx, &[(id, row.attempt)], row.now).await?;
    row.finish(
        done.len(),
        "restore",
        by,
        json!({"state": "failed"}),
        Some(Notification::TicketsUnpublished),
    )
    .await
}

/// Cancels an execution that has not ended. A waiting one ends at once; a running one is cancelled by its worker,
/// unless it succeeds first.
///
/// # Errors
///
/// [`OperatorError::Conflict`] unless the row is pending, retrying or running;
/// [`OperatorError::CancelAlreadyRequested`] if an earlier request is pending.
pub async fn cancel(
    store: &Store,
    id: ExecutionId,
    by: AuditContext<'_>,
    now: Now,
) -> Result<Cancelled, OperatorError> {
    let mut row = LockedExecution::acquire(store, id, now).await?;
    row.check_transition(Cause::Cancel, None)?;
    let was_running = row.state == State::Running;
    if was_running && row.before["cancel_requested"] == true {
        return Err(OperatorError::CancelAlreadyRequested(id));
    }
    let done = transitions::cancel(&mut row.tx, &[id.get()], row.now).await?;
    let after = transitions::after_cancel(was_running);
    let notification = was_running.then_some(Notification::Cancel);
    let moved = done.ended.len() + done.requested.len();
    row.finish(moved, "cancel", by, after, notification).await?;
    Ok(if was_running { Cancelled::Requested } else { Cancelled::Immediately })
}

/// An execution's row, locked until the transaction ends. A drop changes nothing.
/// An execution that a transaction has locked, for an operator.
pub(crate) struct LockedExecution {
    pub(crate) tx: Transaction<'static, Postgres>,
    id: ExecutionId,
    pub(crate) job_id: Uuid,
    state: State,
    attempt: AttemptNumber,
    pub(crate) before: Value,
    pub(crate) now: DateTime<Utc>,
}

impl LockedExecution {
    pub(crate) async fn acquire(
        store: &Store,
        id: ExecutionId,
        now: Now,
    ) -> Result<Self, OperatorError> {
        let mut tx = store.begin().await.map_err(StoreError::from)?;
        set_lock_timeout(&mut tx).await.map_err(StoreError::from)?;
        let flow = sqlx::query!(
            "-- wait_for_flow
            SELECT FROM sexton.wait_for_flow_of($1)",
            id.get()
        );
        match flow.execute(WithTimeout(&mut *tx)).await {
            Ok(_) => {}
            Err(error) if is_lock_timeout(&error) => return Err(OperatorError::Locked(id)),
            Err(error) => return Err(StoreError::from(error).into()),
        }
        let found = sqlx::query!(
            r#"-- lock_execution
            SELECT job_id, state, attempt, coalesce($2, now()) AS "now!",
                   jsonb_build_object('state', state, 'attempt', attempt, 'retries_used', retries_used,
                       'timeouts_used', timeouts_used, 'crashes_used', crashes_used,
                       'snoozes_used', snoozes_used, 'cancel_requested', cancel_requested, 'pool', pool,
                       'error_class', error_class, 'error_message', error_message) AS "before!"
            FROM sexton.executions WHERE id = $1 FOR NO KEY UPDATE"#,
            id.get(),
            now
        )
        .fetch_optional(WithTimeout(&mut *tx))
        .await;
        let row = match found {
            Ok(row) => row.ok_or(OperatorError::Missing(id))?,
            Err(error) if is_lock_timeout(&error) => return Err(OperatorError::Locked(id)),
            Err(error) => return Err(StoreError::from(error).into()),
        };
        Ok(Self {
            tx,
            id,
            job_id: row.job_id,
            state: parse_column("executions.state", &row.state, State::parse)?,
            attempt: parse_attempt_number(row.attempt)?,
            before: row.before,
            now: row.now,
        })
    }

    pub(crate) fn check_transition(
        &self,
        cause: Cause,
        seen: Option<AttemptNumber>,
    ) -> Result<(), OperatorError> {
        if next(self.state, cause).is_some() && seen.is_none_or(|seen| seen == self.attempt) {
            Ok(())
        } else {
            Err(self.conflict())
        }
    }

    pub(crate) fn conflict(&self) -> OperatorError {
        OperatorError::Conflict { id: self.id, state: self.state, attempt: self.attempt }
    }

    async fn finish(
        mut self,
        rows: usize,
        action: &'static str,
        by: AuditContext<'_>,
        after: Value,
        notification: Option<Notification>,
    ) -> Result<(), OperatorError> {
        if rows != 1 {
            return Err(self.conflict());
        }
        let action = NewAction {
            action,
            job_id: self.job_id,
            execution_id: Some(self.id.get()),
            reason: by.reason.map(str::to_owned),
            before: Some(self.before),
            after: Some(after),
        };
        audit::record_actions(&mut self.tx, by.actor, &[action], self.now).await?;
        if let Some(notification) = notification {
            audit::notify(&mut self.tx, notification).await?;
        }
        commit(self.tx).await.map_err(StoreError::from)?;
        Ok(())
    }
}
