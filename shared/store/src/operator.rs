//! What an operator does to an execution: requeue, discard, restore, cancel.
//!
//! Each call is one transaction: it locks the row (waiting at most 5 s), asks the transition table,
//! writes the row only if it is still as it was seen, records who did it and why, and wakes whoever
//! carries it out. A crash before the commit leaves nothing; after it the relay publishes what is
//! owed. Of two operators who do the same at once, one does it and the other is told.

mod audit;
mod browse;
mod edit;
pub(crate) mod moves;
mod settled;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::{Cause, State, next};
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use crate::bounded::{Bounded, commit};
use crate::error::known;
use crate::listen::Wake;
use crate::open::number;
use crate::{Now, Store, StoreError};

pub(crate) use audit::{
    Deed as AuditDeed, bound_waiting, is_lock_timeout as lock_timed_out, record as record_deeds,
    record_of_bulk, wake,
};
use audit::{Deed, is_lock_timeout};
pub use audit::{OperatorAction, of_execution, of_job};
pub use browse::{ActionFilter, From as Beginning, actions};
pub use edit::{Edit, edit};
pub use moves::Terms;
pub use settled::{Frontier, first_missing, frontier, still_writing};

/// Who acts, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct By<'a> {
    /// The operator, as the audit is to show it.
    pub actor: &'a str,
    /// The reason given.
    pub reason: Option<&'a str>,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// There is no such execution.
    #[error("there is no execution {0}")]
    Missing(ExecutionId),
    /// The row is not in a state in which this can be done, or its attempt is no longer the one that
    /// was seen: somebody was faster.
    #[error("execution {id} is {} at attempt {attempt}", state.as_str())]
    Moved {
        /// The execution.
        id: ExecutionId,
        /// Its state now.
        state: State,
        /// Its attempt number now.
        attempt: AttemptNumber,
    },
    /// The execution is running, and its cancel was asked for before.
    #[error("the cancel of execution {0} was asked for before; its worker ends it")]
    Asked(ExecutionId),
    /// Its params are not those any more that the operator had before him.
    #[error("somebody else has edited execution {0} meanwhile; look at it and edit it again")]
    Edited(ExecutionId),
    /// Somebody kept the row locked for 5 s. Try again.
    #[error("execution {0} is locked by somebody else; try again")]
    Locked(ExecutionId),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a cancel did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cancelled {
    /// The execution had not started: it has ended.
    AtOnce,
    /// It runs: its worker was asked to end it.
    Asked,
}

/// Puts a failed execution back into its queue, with fresh budgets and the same attempt number: the
/// parked message is the same ticket, and whichever copy comes first runs. Of a job whose executions
/// run one at a time it waits for its turn, which is at once if the job is free; copies of its ticket
/// open nothing until then.
///
/// # Errors
///
/// [`OperatorError::Moved`] unless the row is `failed` at the attempt that was `seen`.
pub async fn requeue(
    store: &Store,
    id: ExecutionId,
    seen: AttemptNumber,
    by: By<'_>,
    now: Now,
) -> Result<(), OperatorError> {
    requeue_to(store, id, seen, Terms::default(), by, now).await
}

/// The same under other terms: sent to another pool, or asked first whether it has happened.
///
/// # Errors
///
/// As [`requeue`].
pub async fn requeue_to(
    store: &Store,
    id: ExecutionId,
    seen: AttemptNumber,
    terms: Terms<'_>,
    by: By<'_>,
    now: Now,
) -> Result<(), OperatorError> {
    let mut row = Locked::take(store, id, now).await?;
    row.may(Cause::Requeue, Some(seen))?;
    let moved = moves::requeue(&mut row.tx, &[(id, seen)], terms, row.now, row.now).await?;
    let waits = moved.waits > 0;
    let news = if waits { Wake::Jobs } else { Wake::Owed };
    row.finish(moved.ids.len(), "requeue", by, moves::after_requeue(terms), Some(news)).await
}

/// Gives a failed execution up. It can be restored until retention removes it; its parked message is
/// removed by the sweep.
///
/// # Errors
///
/// [`OperatorError::Moved`] unless the row is `failed`.
pub async fn discard(
    store: &Store,
    id: ExecutionId,
    by: By<'_>,
    now: Now,
) -> Result<(), OperatorError> {
    let mut row = Locked::take(store, id, now).await?;
    row.may(Cause::Discard, None)?;
    let done = moves::discard(&mut row.tx, &[(id, row.attempt)], row.now).await?;
    row.finish(done.len(), "discard", by, json!({"state": "discarded"}), None).await
}

/// Takes a discard back: the execution is failed again, and its parked message is owed.
///
/// # Errors
///
/// [`OperatorError::Moved`] unless the row is `discarded`.
pub async fn restore(
    store: &Store,
    id: ExecutionId,
    by: By<'_>,
    now: Now,
) -> Result<(), OperatorError> {
    let mut row = Locked::take(store, id, now).await?;
    row.may(Cause::Restore, None)?;
    let done = moves::restore(&mut row.tx, &[(id, row.attempt)], row.now).await?;
    row.finish(done.len(), "restore", by, json!({"state": "failed"}), Some(Wake::Owed)).await
}

/// Ends an execution that has not ended. One that waits is cancelled at once; one that runs is
/// cancelled by its worker, unless it succeeds first.
///
/// # Errors
///
/// [`OperatorError::Moved`] unless the row is pending, retrying or running;
/// [`OperatorError::Asked`] if its worker was asked before.
pub async fn cancel(
    store: &Store,
    id: ExecutionId,
    by: By<'_>,
    now: Now,
) -> Result<Cancelled, OperatorError> {
    let mut row = Locked::take(store, id, now).await?;
    row.may(Cause::Cancel, None)?;
    if row.state != State::Running {
        let done = sqlx::query!(
            "-- cancel_waiting
            UPDATE executions SET state = 'cancelled', rev = rev + 1, next_attempt_at = NULL,
                finished_at = $2, outcome = 'cancelled'
            WHERE id = $1 AND state IN ('pending', 'retrying')",
            id.get(),
            row.now
        )
        .execute(Bounded(&mut *row.tx))
        .await
        .map_err(StoreError::from)?;
        let after = json!({"state": "cancelled"});
        row.finish(done.rows_affected() as usize, "cancel", by, after, None).await?;
        return Ok(Cancelled::AtOnce);
    }
    if row.before["cancel_requested"] == true {
        return Err(OperatorError::Asked(id));
    }
    let done = sqlx::query!(
        "-- cancel_running
        UPDATE executions SET cancel_requested = true WHERE id = $1 AND state = 'running'",
        id.get()
    )
    .execute(Bounded(&mut *row.tx))
    .await
    .map_err(StoreError::from)?;
    let after = json!({"state": "running", "cancel_requested": true});
    row.finish(done.rows_affected() as usize, "cancel", by, after, Some(Wake::Cancel)).await?;
    Ok(Cancelled::Asked)
}

/// An execution's row, locked until the transaction ends. Dropped, it has changed nothing.
struct Locked {
    tx: Transaction<'static, Postgres>,
    id: ExecutionId,
    job_id: Uuid,
    state: State,
    attempt: AttemptNumber,
    before: Value,
    now: DateTime<Utc>,
}

impl Locked {
    async fn take(store: &Store, id: ExecutionId, now: Now) -> Result<Self, OperatorError> {
        let mut tx = store.begin().await.map_err(StoreError::from)?;
        bound_waiting(&mut tx).await.map_err(StoreError::from)?;
        let found = sqlx::query!(
            r#"-- lock_execution
            SELECT job_id, state, attempt, coalesce($2, now()) AS "now!",
                   jsonb_build_object('state', state, 'attempt', attempt, 'retries_used', retries_used,
                       'timeouts_used', timeouts_used, 'crashes_used', crashes_used,
                       'snoozes_used', snoozes_used, 'cancel_requested', cancel_requested, 'pool', pool,
                       'error_class', error_class, 'error_message', error_message) AS "before!"
            FROM executions WHERE id = $1 FOR NO KEY UPDATE"#,
            id.get(),
            now
        )
        .fetch_optional(Bounded(&mut *tx))
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
            state: known("executions.state", &row.state, State::parse)?,
            attempt: number(row.attempt)?,
            before: row.before,
            now: row.now,
        })
    }

    fn may(&self, cause: Cause, seen: Option<AttemptNumber>) -> Result<(), OperatorError> {
        if next(self.state, cause).is_some() && seen.is_none_or(|seen| seen == self.attempt) {
            Ok(())
        } else {
            Err(self.moved())
        }
    }

    fn moved(&self) -> OperatorError {
        OperatorError::Moved { id: self.id, state: self.state, attempt: self.attempt }
    }

    async fn finish(
        mut self,
        rows: usize,
        action: &'static str,
        by: By<'_>,
        after: Value,
        news: Option<Wake>,
    ) -> Result<(), OperatorError> {
        if rows != 1 {
            return Err(self.moved());
        }
        let deed = Deed {
            action,
            job_id: self.job_id,
            execution_id: Some(self.id.get()),
            reason: by.reason.map(str::to_owned),
            before: Some(self.before),
            after: Some(after),
        };
        audit::record(&mut self.tx, by.actor, &[deed], self.now).await?;
        if let Some(news) = news {
            audit::wake(&mut self.tx, news).await?;
        }
        commit(self.tx).await.map_err(StoreError::from)?;
        Ok(())
    }
}
