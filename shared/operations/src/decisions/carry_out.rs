//! Carries out what was approved, as it was requested.

use serde::de::DeserializeOwned;
use sexton_model::bulk::BulkKind;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::pool::PoolName;
use sexton_model::rate::Rate;
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::approvals::{self as rows, ClaimedRequest};

use crate::actor::Actor;
use crate::approvals::gate::Clearance;
use crate::approvals::proposal::{BulkProposal, EditProposal, Proposal};
use crate::bulks::request::{self, BulkAction, Verifier};
use crate::bulks::verified_requeue;
use crate::digest::sha256_hex;
use crate::error::{Conflict, OperationError};
use crate::failed::actions;
use crate::failed::edit::{EditOptions, EditTarget};
use crate::jobs::backfill::BackfillRange;
use crate::selection::Selection;

/// Reads what a request would do; `None`: there is no such request.
pub(super) async fn read(store: &Store, id: i64) -> Result<Option<Proposal>, OperationError> {
    let Some(request) = rows::find(store, id, None).await? else { return Ok(None) };
    let read = serde_json::from_value(request.proposal);
    read.map(Some).map_err(|error| {
        let text = format!("request {id} was made by another version of Sexton: {error}");
        OperationError::Failed(text)
    })
}

/// Carries a request out, in the name of the person who requested it. A refusal ends it as failed, with the reason.
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
            let seen = AttemptNumber::new(discard.attempt);
            actions::discard_cleared(store, execution, seen, clearance, by).await
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
        Proposal::Backfill(backfill) => {
            let range = BackfillRange::of_proposal(backfill, reason.as_str());
            let run = range.run_approved(store, &requester, backfill.count, claimed);
            match run.await {
                Ok(_) => {
                    fault::point("console.backfill_done");
                    // Those that a process before has made, too.
                    let outcome = format!("{} firings are claimed", backfill.count);
                    Ok(rows::end_backfilled(store, claimed.claim, &outcome, None).await?)
                }
                Err(error) => Err(error),
            }
        }
    };
    let Err(error) = done else { return Ok(()) };
    match error {
        OperationError::Invalid(_) | OperationError::NotFound(_) | OperationError::Conflict(_) => {
            // Unless another process has ended it.
            let (outcome, by) = (error.to_string(), approver.because(None));
            Ok(rows::fail(store, claimed.claim, &outcome, by, None).await?)
        }
        // What the approver may not change, somebody else may.
        passing => {
            // The next process may try at once; if this fails, after two minutes.
            let _ = rows::release(store, claimed.claim).await;
            Err(passing)
        }
    }
}

async fn edit(
    store: &Store,
    edit: &EditProposal,
    clearance: Clearance,
    by: (&Actor, &str),
) -> Result<(), OperationError> {
    let pool = edit.pool.as_deref().and_then(|pool| PoolName::new(pool).ok());
    let options = EditOptions {
        pool: pool.as_ref(),
        // The request was checked.
        is_pool_forced: true,
        attempt: AttemptNumber::new(edit.attempt),
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
    let seen: Vec<(ExecutionId, AttemptNumber)> = bulk
        .ids
        .iter()
        .filter_map(|(id, attempt)| Some((ExecutionId::new(*id), AttemptNumber::new(*attempt)?)))
        .collect();
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
        "task" => Verifier::Tasks,
        "command" => Verifier::Command(""),
        _ => Verifier::Nobody,
    };
    let rate = bulk.rate.as_deref().and_then(|rate| rate.parse::<Rate>().ok());
    let (pool, canary) = (bulk.pool.as_deref(), bulk.canary);
    let action = BulkAction { kind, canary, pool, verify, rate, reason: Some(reason) };
    preview.at_attempts(&seen).create_cleared(store, action, clearance, actor).await.map(drop)
}
