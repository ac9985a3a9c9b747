//! Requeues a few executions whose jobs have a verify task, by a bulk, since the question takes a while and must
//! survive the program that asks.

use serde_json::Value;
use sexton_model::bulk::BulkKind;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_store::bulk::{self, NewBulk};
use sexton_store::{Store, status};

use sexton_store::operator::RequeueOptions;

use super::request::{BulkAction, Verifier, preview};
use crate::actor::Actor;
use crate::approvals::gate::{Clearance, Gate, Outcome};
use crate::error::OperationError;
use crate::failed::actions::{self, find_failed};
use crate::failed::edit::{Difference, EditTarget};
use crate::selection::Selection;

/// What became of the requeue of one execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Requeued {
    /// It waits for a worker.
    Done,
    /// The bulk of this number runs the job's verify task first.
    Verifying(i64),
}

/// What became of an edit that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EditOutcome {
    /// It is edited, and requeued if that was requested.
    Done,
    /// It is edited; the bulk of this number runs the job's verify task before it requeues it.
    Verifying(i64),
}

/// Writes an edit, and requeues the execution if that was requested, after the verify task of its job if there is one; unless a rule
/// demands the approval of others. All of that is one transaction.
///
/// # Errors
///
/// [`crate::error::Conflict`] after another operator's change; nothing was written.
pub async fn edit_and_requeue(
    store: &Store,
    target: &EditTarget<'_>,
    params: &Value,
    difference: &Difference<'_>,
    (actor, reason): (&Actor, &str),
) -> Result<Outcome<EditOutcome>, OperationError> {
    let proposal = target.proposal(params, difference);
    let cleared = Gate::load(store).await?.clear(store, &proposal, (actor, Some(reason))).await?;
    match cleared {
        Outcome::Waits(request) => Ok(Outcome::Waits(request)),
        Outcome::Done(clearance) => {
            let change = (target, params, difference);
            Ok(Outcome::Done(edit_cleared(store, change, clearance, (actor, reason)).await?))
        }
    }
}

/// Writes an edit that needs nobody's approval, or has it.
pub(crate) async fn edit_cleared(
    store: &Store,
    (target, params, difference): (&EditTarget<'_>, &Value, &Difference<'_>),
    clearance: Clearance,
    (actor, reason): (&Actor, &str),
) -> Result<EditOutcome, OperationError> {
    let verifying = target.apply(store, params, difference, clearance, (actor, reason)).await?;
    Ok(verifying.map_or(EditOutcome::Done, EditOutcome::Verifying))
}

/// Requeues one failed execution, after the verify task of its job if there is one. With the attempt number that the operator has `seen`,
/// never a later failure than that one.
///
/// # Errors
///
/// [`crate::error::Conflict::Execution`] unless it is failed at that attempt, with the last action on it.
pub async fn requeue_one(
    store: &Store,
    id: ExecutionId,
    seen: Option<AttemptNumber>,
    by: (&Actor, Option<&str>),
) -> Result<Requeued, OperationError> {
    if count_with_verify_task(store, &[id]).await? > 0 {
        return Ok(Requeued::Verifying(requeue_single(store, id, seen, by).await?));
    }
    actions::requeue(store, id, seen, RequeueOptions::default(), by).await?;
    Ok(Requeued::Done)
}

/// Counts the executions among these whose jobs have a verify task.
///
/// # Errors
///
/// Those of the database.
pub async fn count_with_verify_task(
    store: &Store,
    ids: &[ExecutionId],
) -> Result<u64, OperationError> {
    let raw: Vec<_> = ids.iter().map(|id| id.get()).collect();
    Ok(bulk::count_with_verify_task(store, &raw).await?)
}

/// Creates a bulk that runs the verify task of one execution's job, and requeues it if its effect has not happened.
async fn requeue_single(
    store: &Store,
    id: ExecutionId,
    seen: Option<AttemptNumber>,
    (actor, reason): (&Actor, Option<&str>),
) -> Result<i64, OperationError> {
    let previewed_at = status::clock(store).await?;
    let seen = [(id, find_failed(store, id, seen).await?.1)];
    let new = NewBulk::verifying(&seen, previewed_at);
    Ok(bulk::create(store, &new, actor.because(reason)).await?)
}

/// Creates a bulk that runs the verify task for each execution, at most 1,000, and requeues those whose effect has
/// not happened; returns its number, unless a rule demands the approval of others. With `attempt`, only at that attempt number; otherwise at the current one of
/// each.
///
/// A crash before the commit leaves nothing; after it the schedulers carry the bulk out.
///
/// # Errors
///
/// [`crate::error::Conflict::Execution`] for an execution that is not failed (at the attempt number that the operator
/// saw); nothing is written then.
pub async fn requeue(
    store: &Store,
    ids: &[ExecutionId],
    attempt: Option<AttemptNumber>,
    pool: Option<&str>,
    (actor, reason): (&Actor, Option<&str>),
) -> Result<Outcome<i64>, OperationError> {
    let mut seen = Vec::with_capacity(ids.len());
    for id in ids {
        seen.push((*id, find_failed(store, *id, attempt).await?.1));
    }
    let preview = preview(store, &Selection::Ids(ids.to_vec()), None).await?.at_attempts(&seen);
    let action = BulkAction {
        kind: BulkKind::Requeue,
        canary: None,
        pool,
        verify: Verifier::Tasks,
        rate: None,
        reason,
    };
    preview.create(store, action, actor).await
}
