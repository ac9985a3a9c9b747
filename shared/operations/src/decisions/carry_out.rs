//! Carries out what was approved, as it was requested.

use serde::de::DeserializeOwned;
use sexton_model::bulk::BulkKind;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::pool::PoolName;
use sexton_model::rate::Rate;
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::approvals::{self as rows, ClaimedRequest};
use sexton_store::bulk::{VERIFY_BY_COMMAND, VERIFY_BY_NOBODY, VERIFY_BY_TASK};

use crate::actor::Actor;
use crate::approvals::gate::Clearance;
use crate::approvals::proposal::{
    BackfillProposal, BulkProposal, EditProposal, Proposal, made_by_another,
};
use crate::bulks::request::{self, BulkAction, Verifier};
use crate::bulks::verified_requeue;
use crate::digest::sha256_hex;
use crate::error::{Conflict, InvalidRequest, OperationError};
use crate::failed::actions;
use crate::failed::edit::{EditOptions, EditTarget};
use crate::jobs::backfill::BackfillRange;
use crate::selection::Selection;

/// Reads what a request would do; `None`: there is no such request.
///
/// # Errors
///
/// [`Conflict::Other`]: this version cannot read it; and those of the database.
pub(super) async fn read(store: &Store, id: i64) -> Result<Option<Proposal>, OperationError> {
    let Some(request) = rows::find(store, id, None).await? else { return Ok(None) };
    let read = serde_json::from_value(request.proposal);
    // The reason may quote a value, which can be a secret.
    read.map(Some).map_err(|_| made_by_another("action"))
}

/// Carries a request out, in the name of the person who requested it. A refusal ends it as failed, with the reason, also one by the database.
///
/// # Errors
///
/// What may pass: the request stays approved.
pub(super) async fn carry_out(
    store: &Store,
    claimed: &ClaimedRequest,
    proposal: &Proposal,
    approver: &Actor,
) -> Result<(), OperationError> {
    let id = claimed.claim.request;
    let requester = Actor { name: claimed.requested_by.clone(), ..approver.clone() };
    let reason = match &claimed.reason {
        Some(reason) => format!("{reason} (approval {id})"),
        None => format!("approval {id}"),
    };
    let by = (&requester, reason.as_str());
    let clearance = Clearance::of_claim(claimed.claim);
    let done = match proposal {
        Proposal::Edit(edit) => self::edit(store, edit, clearance, by).await,
        Proposal::Discard(discard) => {
            let execution = ExecutionId::new(discard.execution);
            match AttemptNumber::new(discard.attempt) {
                Some(seen) => {
                    actions::discard_cleared(store, execution, Some(seen), clearance, by).await
                }
                None => Err(made_by_another("attempt")),
            }
        }
        Proposal::BulkRequeue(bulk) => {
            self::bulk(store, (BulkKind::Requeue, bulk), clearance, by).await
        }
        Proposal::BulkDiscard(bulk) => {
            self::bulk(store, (BulkKind::Discard, bulk), clearance, by).await
        }
        Proposal::BulkCancel(bulk) => {
            self::bulk(store, (BulkKind::Cancel, bulk), clearance, by).await
        }
        Proposal::Backfill(backfill) => self::backfill(store, backfill, claimed, by).await,
    };
    let Err(error) = done else { return Ok(()) };
    if error.is_final() {
        return end_failed(store, claimed, &error, approver).await;
    }
    // What the approver may not change, somebody else may. The next process may try at once; if this fails, after two minutes.
    let _ = rows::release(store, claimed.claim).await;
    Err(match error {
        OperationError::Invalid(InvalidRequest::Ahead { .. }) => {
            let text = "the database's clock is behind that of the request: it was set back; approve it again when the clock is right";
            OperationError::Failed(text.to_owned())
        }
        error => error,
    })
}

/// Ends a request as failed, unless another process has ended it.
pub(super) async fn end_failed(
    store: &Store,
    claimed: &ClaimedRequest,
    error: &OperationError,
    approver: &Actor,
) -> Result<(), OperationError> {
    let outcome = error.to_string();
    Ok(rows::fail(store, claimed.claim, &outcome, approver.because(None), None).await?)
}

async fn backfill(
    store: &Store,
    backfill: &BackfillProposal,
    claimed: &ClaimedRequest,
    (actor, reason): (&Actor, &str),
) -> Result<(), OperationError> {
    let range = BackfillRange::of_proposal(backfill, reason);
    let range = range.ok_or_else(|| made_by_another("rate"))?;
    let done = range.run_approved(store, actor, backfill.count, claimed).await;
    done.map_err(|error| name_earlier_batches(error, claimed))?;
    fault::point("console.backfill_done");
    // Those that a process before has made, too.
    let outcome = format!("{} firings are claimed", backfill.count);
    Ok(rows::end_backfilled(store, claimed.claim, &outcome, None).await?)
}

/// Adds to a refusal that ends the request what a process before may have made: only that one could count it.
fn name_earlier_batches(error: OperationError, claimed: &ClaimedRequest) -> OperationError {
    if claimed.is_repeated && error.is_final() {
        let text = format!("{error} (firings that another process made before stay)");
        return Conflict::Other(text).into();
    }
    error
}

async fn edit(
    store: &Store,
    edit: &EditProposal,
    clearance: Clearance,
    by: (&Actor, &str),
) -> Result<(), OperationError> {
    let pool = edit.pool.as_deref().map(PoolName::new).transpose();
    let pool = pool.map_err(|_| made_by_another("pool"))?;
    let options = EditOptions {
        pool: pool.as_ref(),
        // The request was checked.
        is_pool_forced: true,
        attempt: Some(AttemptNumber::new(edit.attempt).ok_or_else(|| made_by_another("attempt"))?),
        requeue: edit.requeue,
        verify: edit.verify,
    };
    let target = EditTarget::find(store, &edit.execution.to_string(), options).await?;
    if sha256_hex(target.row.params.to_string().as_bytes()) != edit.seen {
        let text = "somebody else has edited the execution since; request it again";
        return Err(Conflict::Other(text.to_owned()).into());
    }
    let difference = target.compare(&edit.params)?;
    target.schemas(store, &difference).await?.check(&edit.params)?;
    let change = (&target, &edit.params, &difference);
    verified_requeue::edit_cleared(store, change, clearance, by).await.map(drop)
}

fn selection<F: DeserializeOwned>(
    bulk: &BulkProposal,
    ids: impl FnOnce() -> Vec<ExecutionId>,
) -> Result<Selection<F>, OperationError> {
    let filter = bulk.read_filter()?;
    Ok(filter.map_or_else(|| Selection::Ids(ids()), |filter| Selection::Filter(Box::new(filter))))
}

async fn bulk(
    store: &Store,
    (kind, bulk): (BulkKind, &BulkProposal),
    clearance: Clearance,
    (actor, reason): (&Actor, &str),
) -> Result<(), OperationError> {
    let mut seen: Vec<(ExecutionId, AttemptNumber)> = Vec::with_capacity(bulk.ids.len());
    for (id, attempt) in &bulk.ids {
        let attempt = AttemptNumber::new(*attempt).ok_or_else(|| made_by_another("attempt"))?;
        seen.push((ExecutionId::new(*id), attempt));
    }
    let ids = || seen.iter().map(|(id, _)| *id).collect();
    let until = Some(bulk.previewed_at);
    let mut preview = if kind == BulkKind::Cancel {
        request::preview_cancel(store, &selection(bulk, ids)?, until).await?
    } else {
        request::preview(store, &selection(bulk, ids)?, until).await?
    };
    // What was requeued since then is left alone, also if it was selected by its id.
    preview.counts.previewed_at = bulk.previewed_at;
    preview.check()?;
    preview.check_approved(kind, bulk)?;
    let verify = match bulk.verify.as_str() {
        VERIFY_BY_TASK => Verifier::Tasks,
        VERIFY_BY_COMMAND => Verifier::Command(""),
        VERIFY_BY_NOBODY => Verifier::Nobody,
        _ => return Err(made_by_another("verify")),
    };
    let rate = bulk.rate.as_deref().map(str::parse::<Rate>).transpose();
    let rate = rate.map_err(|_| made_by_another("rate"))?;
    let (pool, canary) = (bulk.pool.as_deref(), bulk.canary);
    let action = BulkAction { kind, canary, pool, verify, rate, reason: Some(reason) };
    preview.at_attempts(&seen).create_cleared(store, action, clearance, actor).await.map(drop)
}
