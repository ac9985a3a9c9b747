//! Requeues a few executions whose jobs have a verify task, by a bulk, since the question takes a while and must
//! survive the program that asks.

use serde_json::Value;
use sexton_model::bulk::BulkKind;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_store::bulk::{self, BulkSelector, NewBulk};
use sexton_store::{Store, status};

use sexton_store::operator::RequeueOptions;

use super::request::Verifier;
use crate::actor::Actor;
use crate::error::OperationError;
use crate::failed::actions::{self, find_failed};
use crate::failed::edit::{Difference, EditTarget, Edited};

/// What became of the requeue of one execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Requeued {
    /// It waits for a worker.
    Done,
    /// The bulk of this number runs the job's verify task first.
    Verifying(i64),
}

/// What became of an edit that was written.
#[derive(Debug)]
pub enum EditOutcome {
    /// It is edited, and requeued if that was requested.
    Done,
    /// It is edited; the bulk of this number runs the job's verify task before it requeues it.
    Verifying(i64),
    /// It is edited, but stays failed: for this reason there is no bulk that runs the verify task.
    NotRequeued(OperationError),
}

/// Writes an edit, and then requeues the execution if that was requested, after the verify task of its job if there is one.
///
/// A crash between the edit and the bulk that verifies leaves the execution edited and failed.
///
/// # Errors
///
/// [`crate::error::Conflict`] after another operator's change; nothing was written. Once the edit is written, nothing is an error.
pub async fn edit_and_requeue(
    store: &Store,
    target: &EditTarget<'_>,
    params: &Value,
    difference: &Difference<'_>,
    (actor, reason): (&Actor, &str),
) -> Result<EditOutcome, OperationError> {
    let edited = target.apply(store, params, difference, (actor, reason)).await?;
    let Edited::ToVerify { id, attempt } = edited else { return Ok(EditOutcome::Done) };
    let requeued = requeue(store, &[id], Some(attempt), None, (actor, Some(reason))).await;
    Ok(requeued.map_or_else(EditOutcome::NotRequeued, EditOutcome::Verifying))
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
        return Ok(Requeued::Verifying(requeue(store, &[id], seen, None, by).await?));
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

/// Creates a bulk that runs the verify task for each execution, at most 1,000, and requeues those whose effect has
/// not happened; returns its number. With `attempt`, only at that attempt number; otherwise at the current one of
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
) -> Result<i64, OperationError> {
    let previewed_at = status::clock(store).await?;
    let mut seen = Vec::with_capacity(ids.len());
    for id in ids {
        seen.push((*id, find_failed(store, *id, attempt).await?.1));
    }
    let new = NewBulk {
        kind: BulkKind::Requeue,
        selector: BulkSelector::Ids(&seen),
        previewed_at,
        rate: None,
        canary: None,
        pool,
        verify: Verifier::Tasks.to_store(true),
    };
    Ok(bulk::create(store, &new, actor.because(reason)).await?)
}
