//! Requeues, discards and restores executions one by one.
//!
//! Each call is one transaction with its record in the audit. Of several executions each is handled separately: the
//! possible ones are done, and a repeated request does only the others.

use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::pool::PoolName;
use sexton_model::state::State;
use sexton_service::fault;
use sexton_store::executions::{self, Execution};
use sexton_store::operator::{self, OperatorError, RequeueOptions};
use sexton_store::{Store, instances};

use crate::actor::Actor;
use crate::approvals::gate::{Clearance, Gate, Outcome};
use crate::approvals::proposal::{DiscardProposal, Proposal};
use crate::error::{Conflict, ExecutionAction, NotFound, OperationError, action_error};
use crate::execution_ids;
use crate::text::ago;

/// Requeues a failed execution. With the attempt number that the operator has `seen`, never a later failure than that
/// one; without, the current one.
///
/// # Errors
///
/// [`Conflict::Execution`] unless it is failed at that attempt, with the last action on it.
pub async fn requeue(
    store: &Store,
    id: ExecutionId,
    seen: Option<AttemptNumber>,
    terms: RequeueOptions<'_>,
    (actor, reason): (&Actor, Option<&str>),
) -> Result<(), OperationError> {
    let seen = if let Some(seen) = seen {
        seen
    } else {
        let row = find(store, id).await?;
        AttemptNumber::new(row.attempt).unwrap_or(AttemptNumber::FIRST)
    };
    let done = operator::requeue_with(store, id, seen, terms, actor.because(reason), None).await;
    let done = or_conflict(store, done, ExecutionAction::Requeue).await;
    if done.is_ok() {
        fault::point("console.requeued");
    }
    done
}

/// Gives up a failed execution, unless a rule demands the approval of others. It can be restored until retention removes it.
///
/// # Errors
///
/// [`Conflict::Execution`] unless it is failed, with the last action on it.
pub async fn discard(
    store: &Store,
    id: ExecutionId,
    actor: &Actor,
    reason: &str,
) -> Result<Outcome<()>, OperationError> {
    let (gate, by) = (Gate::load(store).await?, (actor, reason));
    if let Some(clearance) = gate.without_rules() {
        return Ok(Outcome::Done(discard_cleared(store, id, None, clearance, by).await?));
    }
    let row = find(store, id).await?;
    let attempt = AttemptNumber::new(row.attempt).unwrap_or(AttemptNumber::FIRST);
    if State::parse(&row.state) != Some(State::Failed) {
        let state = State::parse(&row.state).unwrap_or(State::Pending);
        let moved = OperatorError::Conflict { id, state, attempt };
        return Err(conflict(store, moved, ExecutionAction::Discard).await);
    }
    let (execution, job) = (id.get(), row.job_name);
    let proposal = Proposal::Discard(DiscardProposal { execution, job, attempt: attempt.get() });
    match gate.clear(store, &proposal, (actor, Some(reason))).await? {
        Outcome::Waits(request) => Ok(Outcome::Waits(request)),
        Outcome::Done(clearance) => {
            let discarded = discard_cleared(store, id, Some(attempt), clearance, by).await;
            Ok(Outcome::Done(discarded?))
        }
    }
}

/// Gives up a failed execution, only at the attempt number that was `seen`.
pub(crate) async fn discard_cleared(
    store: &Store,
    id: ExecutionId,
    seen: Option<AttemptNumber>,
    clearance: Clearance,
    (actor, reason): (&Actor, &str),
) -> Result<(), OperationError> {
    let (seen, by) = ((seen, clearance.claim()), actor.because(Some(reason)));
    let done = operator::discard_with(store, id, seen, by, None).await;
    let done = or_conflict(store, done, ExecutionAction::Discard).await;
    if done.is_ok() {
        fault::point("console.discarded");
    }
    done
}

/// Takes a discard back: the execution is failed again.
///
/// # Errors
///
/// [`Conflict::Execution`] unless it is discarded, with the last action on it.
pub async fn restore(
    store: &Store,
    id: ExecutionId,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<(), OperationError> {
    let done = operator::restore(store, id, actor.because(reason), None).await;
    let done = or_conflict(store, done, ExecutionAction::Restore).await;
    if done.is_ok() {
        fault::point("console.restored");
    }
    done
}

/// Checks that a worker consumes from a pool, unless the caller forces the pool.
///
/// # Errors
///
/// [`NotFound::ServedPool`] with the pools that have workers.
pub async fn check_pool(
    store: &Store,
    pool: &PoolName,
    is_forced: bool,
) -> Result<(), OperationError> {
    let all = instances::list(store, None).await?;
    let mut served: Vec<String> = all.into_iter().flat_map(|instance| instance.pools).collect();
    if is_forced || served.iter().any(|one| one == pool.as_str()) {
        return Ok(());
    }
    served.sort_unstable();
    served.dedup();
    Err(NotFound::ServedPool { pool: pool.to_string(), served }.into())
}

/// Returns the execution, which must be failed, at the given attempt number if there is one.
///
/// # Errors
///
/// [`NotFound::Execution`]; [`Conflict::Execution`], with the last action on it.
pub(crate) async fn find_failed(
    store: &Store,
    id: ExecutionId,
    seen: Option<AttemptNumber>,
) -> Result<(Execution, AttemptNumber), OperationError> {
    let row = find(store, id).await?;
    let state = State::parse(&row.state).unwrap_or(State::Pending);
    let attempt = AttemptNumber::new(row.attempt).unwrap_or(AttemptNumber::FIRST);
    if state != State::Failed || seen.is_some_and(|seen| seen != attempt) {
        let moved = OperatorError::Conflict { id, state, attempt };
        return Err(conflict(store, moved, ExecutionAction::Requeue).await);
    }
    Ok((row, attempt))
}

async fn find(store: &Store, id: ExecutionId) -> Result<Execution, OperationError> {
    executions::find(store, id.get()).await?.ok_or_else(|| execution_ids::missing(id))
}

async fn or_conflict(
    store: &Store,
    done: Result<(), OperatorError>,
    action: ExecutionAction,
) -> Result<(), OperationError> {
    match done {
        Ok(()) => Ok(()),
        Err(error) => Err(conflict(store, error, action).await),
    }
}

/// Returns why it was refused, and if another operator was faster, who and when.
pub(crate) async fn conflict(
    store: &Store,
    error: OperatorError,
    action: ExecutionAction,
) -> OperationError {
    let OperatorError::Conflict { id, .. } = error else {
        return action_error(error, action);
    };
    let error = action_error(error, action);
    let actions = operator::list_by_execution(store, id.get()).await.unwrap_or_default();
    let now = sexton_store::status::clock(store).await;
    match (error, actions.into_iter().last(), now) {
        (
            OperationError::Conflict(Conflict::Execution { id, action, state, attempt, .. }),
            Some(last),
            Ok(now),
        ) => {
            let when = ago(last.at, now);
            let last = Some((Box::new(last), when));
            Conflict::Execution { id, action, state, attempt, last }.into()
        }
        (error, ..) => error,
    }
}
