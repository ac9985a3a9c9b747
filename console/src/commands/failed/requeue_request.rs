//! Requeues of a few whose jobs have a verify task: a bulk of them, since the question takes a while and must
//! survive this command.

use sexton_model::bulk::BulkKind;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::State;
use sexton_store::bulk::{self, BulkSelector, NewBulk};
use sexton_store::operator::{AuditContext, OperatorError};
use sexton_store::{Store, executions};

use super::actions::conflict;
use super::bulk::Verifier;
use super::watch;
use crate::commands::reference;
use crate::failure::Failure;
use crate::session::Session;

/// Which, and under which terms.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequeueRequest<'a> {
    /// The executions, at most 1,000.
    pub(super) ids: &'a [ExecutionId],
    /// Only at this attempt number; `None`: at the one that each has now.
    pub(super) attempt: Option<AttemptNumber>,
    /// The pool they are sent to.
    pub(super) pool: Option<&'a str>,
    /// Whether nobody waits for the end.
    pub(super) detach: bool,
}

/// How many of them are of jobs that have a verify task.
///
/// # Errors
///
/// Those of the database.
pub(super) async fn count_with_verify_task(
    store: &Store,
    ids: &[ExecutionId],
) -> Result<u64, Failure> {
    let raw: Vec<_> = ids.iter().map(|id| id.get()).collect();
    Ok(bulk::count_with_verify_task(store, &raw).await?)
}

/// Writes the bulk and watches it. A crash before it is written leaves nothing; after it the schedulers ask and
/// requeue.
///
/// # Errors
///
/// [`Failure`]; for an execution that is not failed (at the attempt that was seen) nothing is asked for.
pub(super) async fn requeue(
    store: &Store,
    request: RequeueRequest<'_>,
    by: AuditContext<'_>,
    session: &Session,
) -> Result<(), Failure> {
    let previewed_at = session.now(store).await?;
    let mut seen = Vec::with_capacity(request.ids.len());
    for id in request.ids {
        let row =
            executions::find(store, id.get()).await?.ok_or_else(|| reference::missing(*id))?;
        let state = State::parse(&row.state).unwrap_or(State::Pending);
        let attempt = AttemptNumber::new(row.attempt).unwrap_or(AttemptNumber::FIRST);
        if state != State::Failed || request.attempt.is_some_and(|seen| seen != attempt) {
            let moved = OperatorError::Conflict { id: *id, state, attempt };
            return Err(conflict(store, moved, "requeued").await);
        }
        seen.push((*id, attempt));
    }
    let new = NewBulk {
        kind: BulkKind::Requeue,
        selector: BulkSelector::Ids(&seen),
        previewed_at,
        rate: None,
        canary: None,
        pool: request.pool,
        verify: Verifier::Tasks.to_store(true),
    };
    let id = bulk::create(store, &new, by).await?;
    if !session.out.is_json() {
        session.out.print(format!("Bulk {id} asks the verify task of the job first."))?;
    }
    watch::follow(store, id, request.detach, session).await
}
