//! Edits a failed execution: other params, or another pool.
//!
//! One transaction locks the row, writes it if its params are still those that the operator saw, records both
//! versions whole (so the original is kept for as long as the audit is), and, on request, requeues the execution, or
//! creates the bulk that runs its job's verify task first. Its key, its idempotency key and its attempt numbers stay. A
//! message that is parked for it shows the params that it was parked with; the row's params run.

use serde_json::{Value, json};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::Cause;

use crate::approved::{Claim, end_carried_out};
use crate::bulk::{self, NewBulk};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::notifications::Notification;
use crate::operator::transitions::{self, RequeueOptions};
use crate::operator::{
    AuditContext, LockedExecution, NewAction, OperatorError, notify, record_actions,
};
use crate::{Now, Store, StoreError};

/// What follows an edit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterEdit {
    /// The execution stays failed.
    Stay,
    /// It is requeued.
    Requeue {
        /// Although its job has a verify task.
        unverified: bool,
    },
    /// A bulk runs its job's verify task, and requeues it if its effect has not happened.
    Verify,
}

/// The change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Edit<'a> {
    /// The params that the operator saw.
    pub seen: &'a Value,
    /// The new params.
    pub params: &'a Value,
    /// The new pool; `None`: unchanged.
    pub pool: Option<&'a str>,
    /// What follows.
    pub then: AfterEdit,
}

/// Changes a failed execution, and does what follows; with a claim it also ends that request for approval. Returns the number of the bulk that
/// verifies it. A crash before the commit leaves everything as it was; after it the relay publishes the ticket, or the schedulers carry the bulk out.
///
/// # Errors
///
/// [`OperatorError::Conflict`] unless the row is `failed` at the attempt `attempt`; [`OperatorError::ParamsChanged`]
/// when somebody else has changed its params meanwhile.
pub async fn edit(
    store: &Store,
    id: ExecutionId,
    attempt: AttemptNumber,
    edit: Edit<'_>,
    claim: Option<Claim>,
    by: AuditContext<'_>,
    now: Now,
) -> Result<Option<i64>, OperatorError> {
    let mut row = LockedExecution::acquire(store, id, now).await?;
    row.check_transition(Cause::Requeue, Some(attempt))?;
    let pool = row.before["pool"].clone();
    let done = sqlx::query!(
        "-- edit_execution
        UPDATE sexton.executions SET params = $3, pool = coalesce($5, pool)
        WHERE id = $1 AND state = 'failed' AND attempt = $2 AND params = $4",
        id.get(),
        attempt.get(),
        edit.params,
        edit.seen,
        edit.pool
    )
    .execute(WithTimeout(&mut *row.tx))
    .await
    .map_err(StoreError::from)?;
    if done.rows_affected() != 1 {
        return Err(OperatorError::ParamsChanged(id));
    }
    let action = |action, before, after| NewAction {
        action,
        job_id: row.job_id,
        execution_id: Some(id.get()),
        reason: by.reason.map(str::to_owned),
        before: Some(before),
        after: Some(after),
    };
    let mut actions = vec![action(
        "edit",
        json!({"params": edit.seen, "pool": pool}),
        json!({"params": edit.params, "pool": edit.pool.map_or(pool.clone(), |pool| json!(pool))}),
    )];
    if let AfterEdit::Requeue { unverified } = edit.then {
        let terms = RequeueOptions { unverified, ..RequeueOptions::default() };
        let moved =
            transitions::requeue(&mut row.tx, &[(id, attempt)], terms, row.now, row.now).await?;
        if moved.ids.len() != 1 {
            return Err(row.conflict());
        }
        let notification =
            if moved.waits > 0 { Notification::Jobs } else { Notification::TicketsUnpublished };
        actions.push(action("requeue", row.before.clone(), transitions::after_requeue(terms)));
        notify(&mut row.tx, notification).await?;
    }
    record_actions(&mut row.tx, by.actor, &actions, row.now).await?;
    let verifying = match edit.then {
        AfterEdit::Verify => {
            let items = [(id, attempt)];
            let verifying = NewBulk::verifying(&items, row.now);
            Some(bulk::insert(&mut row.tx, &verifying, by).await?.id)
        }
        AfterEdit::Stay | AfterEdit::Requeue { .. } => None,
    };
    if let Some(claim) = claim {
        let outcome = match (edit.then, verifying) {
            (_, Some(bulk)) => format!("it is edited, and bulk {bulk} verifies and requeues it"),
            (AfterEdit::Stay, _) => "it is edited".to_owned(),
            _ => "it is edited and requeued".to_owned(),
        };
        end_carried_out(&mut row.tx, claim, verifying, &outcome, row.now).await?;
    }
    commit(row.tx).await.map_err(StoreError::from)?;
    Ok(verifying)
}
