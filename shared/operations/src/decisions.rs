//! Decisions about requests for approval: approved, rejected. The last approval carries the action out.
//!
//! An approval is committed first. Then this process claims the request and carries it out, by the operation that it was requested of, which
//! checks everything again. What has changed since the request, or what this version cannot read, ends it as failed. A crash in between
//! leaves a request that is `approved`:
//! the next approval of anybody carries it out, without counting.

mod carry_out;

use sexton_model::approval::VoteRefusal;
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::approvals::{self as rows, ApprovalRequest, VoteOutcome};

use crate::actor::Actor;
use crate::approvals::gate::{Gate, names_of};
use crate::approvals::requests::{self, describe_state};
use crate::approvals::restricted;
use crate::error::{Conflict, OperationError};

/// Approves a request, and carries it out if that was the last approval that it needed. Returns the request as it is then.
///
/// # Errors
///
/// [`crate::error::NotFound::Other`]: there is no such request; [`Conflict`]: the person may not approve it, or it has ended. What goes wrong when it is carried
/// out is no error: the request has it as its outcome. [`OperationError::Failed`] and those of the database: the approval may be recorded.
pub async fn approve(
    store: &Store,
    id: i64,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<ApprovalRequest, OperationError> {
    check_scope(store, id).await?;
    let proposal = match carry_out::read(store, id).await {
        Ok(Some(proposal)) => proposal,
        Ok(None) => return requests::find(store, id).await,
        Err(error) => return end_unreadable(store, id, error, actor).await,
    };
    // A stricter rule that was set meanwhile holds.
    let needs = Gate::load(store).await?.demand(store, &proposal).await?;
    let people = needs.and_then(|needs| i16::try_from(needs.people).ok()).unwrap_or_default();
    let names = names_of(store, actor).await?;
    match rows::approve(store, id, people, &names, actor.because(reason), None).await? {
        VoteOutcome::Recorded => fault::point("console.approved"),
        VoteOutcome::ApprovedBefore => {}
        other => return refuse(store, id, other).await,
    }
    if let Some(claimed) = rows::claim(store, id, None).await? {
        fault::point("console.claimed");
        match carry_out::carry_out(store, &claimed, &proposal, actor).await {
            // The approval is recorded, and somebody who may change all of it carries it out.
            Ok(()) | Err(OperationError::OutOfScope(_)) => {}
            Err(error) => return Err(error),
        }
    }
    requests::find(store, id).await
}

/// Ends a request that is approved and that this version cannot read. Nobody approves one that still waits.
async fn end_unreadable(
    store: &Store,
    id: i64,
    error: OperationError,
    actor: &Actor,
) -> Result<ApprovalRequest, OperationError> {
    if !error.is_final() {
        return Err(error);
    }
    let Some(claimed) = rows::claim(store, id, None).await? else { return Err(error) };
    carry_out::end_failed(store, &claimed, &error, actor).await?;
    requests::find(store, id).await
}

/// Rejects a request; the person who requested it takes it back so.
///
/// # Errors
///
/// As [`approve`].
pub async fn reject(
    store: &Store,
    id: i64,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<ApprovalRequest, OperationError> {
    // One's own request is taken back though its jobs have left the scope. The name alone is not enough: it can be given again.
    let request = requests::find(store, id).await?;
    let scope = store.only_jobs().map(ToString::to_string);
    if request.requested_by != actor.name || request.only_jobs != scope {
        check_scope(store, id).await?;
    }
    match rows::reject(store, id, actor.because(reason), None).await? {
        VoteOutcome::Recorded => requests::find(store, id).await,
        other => refuse(store, id, other).await,
    }
}

/// Refuses a request of jobs that the caller may not change.
async fn check_scope(store: &Store, id: i64) -> Result<(), OperationError> {
    if store.only_jobs().is_none() {
        return Ok(());
    }
    let Some(proposal) = carry_out::read(store, id).await? else { return Ok(()) };
    restricted::check(store, &proposal).await
}

async fn refuse(
    store: &Store,
    id: i64,
    outcome: VoteOutcome,
) -> Result<ApprovalRequest, OperationError> {
    let request = requests::find(store, id).await?;
    let text = match outcome {
        VoteOutcome::Refused(VoteRefusal::Expired) => {
            format!("request {id} {}", VoteRefusal::Expired)
        }
        VoteOutcome::Refused(refusal) => format!("request {id} {refusal}"),
        VoteOutcome::UnderWay => {
            format!("request {id} is being carried out; look at it again in a moment")
        }
        _ => format!("request {id} {}", describe_state(&request)),
    };
    Err(Conflict::Other(text).into())
}
