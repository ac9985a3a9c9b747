//! `sexton failed requeue`, `discard` and `restore`: of one or of several, each by itself; of many, as a bulk.

use serde_json::json;
use sexton_model::bulk::BulkKind;
use sexton_model::id::AttemptNumber;
use sexton_model::pool::PoolName;
use sexton_operations::approvals::gate::Outcome;
use sexton_operations::bulks::request::{
    BulkAction, Verifier, check_discarded, create_restore, find_discarding, preview,
};
use sexton_operations::bulks::ruled::ruled_bulk;
use sexton_operations::bulks::verified_requeue;
use sexton_operations::error::InvalidRequest;
use sexton_operations::failed::actions::{self, check_pool};
use sexton_operations::selection::Selection;
use sexton_store::Store;
use sexton_store::operator::RequeueOptions;

use super::{Discard, Requeue, Restore};
use crate::commands::approvals::report_waiting;
use crate::commands::bulks::{follow, request_bulk};
use crate::commands::report::{ActionResult, Report};
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::session::Session;

pub(super) async fn requeue(arguments: &Requeue, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let selection = arguments.selector.select(&store, false, now).await?;
    let seen = arguments.attempt.and_then(AttemptNumber::new);
    if let Some(pool) = &arguments.to_pool {
        check_pool(&store, pool, arguments.force).await?;
    }
    let pool = arguments.to_pool.as_ref().map(PoolName::as_str);
    let (options, reason) = (&arguments.options, arguments.reason.as_deref());
    let needs_bulk = options.rate.is_some()
        || arguments.canary.is_some()
        || arguments.verify.is_some()
        || options.dry_run;
    let verify = match arguments.verify.as_deref() {
        Some(command) => Verifier::Command(command),
        None if arguments.no_verify => Verifier::Nobody,
        None => Verifier::Tasks,
    };
    let ids = match selection {
        Selection::Ids(ids) if !needs_bulk => ids,
        _ if seen.is_some() => return Err(InvalidRequest::AttemptNeedsSingleId.into()),
        selection => {
            let (kind, canary, rate) = (BulkKind::Requeue, arguments.canary, options.rate);
            let action = BulkAction { kind, canary, pool, verify, rate, reason };
            let bulk = preview(&store, &selection, None).await?;
            return request_bulk(&store, &bulk, action, options, session).await;
        }
    };
    if seen.is_some() && ids.len() > 1 {
        return Err(InvalidRequest::AttemptNeedsSingleId.into());
    }
    let action = BulkAction { pool, verify, ..BulkAction::new(BulkKind::Requeue, None, reason) };
    if let Some(bulk) = ruled_bulk(&store, action, &ids, seen).await? {
        return request_bulk(&store, &bulk, action, options, session).await;
    }
    if ids.len() > 1 {
        confirm(&format!("{} executions will be requeued", ids.len()), options.yes)?;
    }
    let by = (&session.actor, reason);
    let with_verify_task = verified_requeue::count_with_verify_task(&store, &ids).await?;
    if with_verify_task > 0 && verify == Verifier::Tasks {
        return match verified_requeue::requeue(&store, &ids, seen, pool, by).await? {
            Outcome::Done(id) => follow_verified(&store, id, options.detach, session).await,
            Outcome::Waits(request) => report_waiting(&request, session),
        };
    }
    let terms = RequeueOptions { pool, unverified: with_verify_task > 0 };
    let mut report = Report::new("requeued", ids.len());
    for id in ids {
        let done = actions::requeue(&store, id, seen, terms, by).await;
        report.add(id, done.map(|()| ActionResult { state: "pending", text: "is requeued" }))?;
    }
    report.render(session)
}

/// Watches a bulk that runs a verify task before it requeues.
pub(super) async fn follow_verified(
    store: &Store,
    id: i64,
    detach: bool,
    session: &Session,
) -> Result<(), Failure> {
    if !session.out.is_json() {
        session.out.print(format!("Bulk {id} runs the job's verify task first."))?;
    }
    follow(store, id, detach, session).await
}

pub(super) async fn discard(arguments: &Discard, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let selection = arguments.selector.select(&store, false, now).await?;
    let (options, reason) = (&arguments.options, &arguments.reason);
    let ids = match selection {
        Selection::Ids(ids) if options.rate.is_none() && !options.dry_run => ids,
        selection => {
            let action = BulkAction::new(BulkKind::Discard, options.rate, Some(reason));
            let bulk = preview(&store, &selection, None).await?;
            return request_bulk(&store, &bulk, action, options, session).await;
        }
    };
    let action = BulkAction::new(BulkKind::Discard, None, Some(reason));
    if let Some(bulk) = ruled_bulk(&store, action, &ids, None).await? {
        return request_bulk(&store, &bulk, action, options, session).await;
    }
    let noun = if ids.len() == 1 { "failed execution" } else { "failed executions" };
    confirm(&format!("{} {noun} will be given up", ids.len()), options.yes)?;
    let total = ids.len();
    let mut report = Report::new("discarded", total);
    for id in ids {
        let done = match actions::discard(&store, id, &session.actor, reason).await {
            Ok(Outcome::Done(())) => Ok(ActionResult { state: "discarded", text: "is discarded" }),
            Ok(Outcome::Waits(request)) if total == 1 => return report_waiting(&request, session),
            // A rule was set in between.
            Ok(Outcome::Waits(_)) => {
                Ok(ActionResult { state: "failed", text: "waits for approval" })
            }
            Err(error) => Err(error),
        };
        report.add(id, done)?;
    }
    report.render(session)
}

pub(super) async fn restore(arguments: &Restore, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    if let Some(bulk) = arguments.bulk {
        return restore_bulk(&store, bulk, arguments, session).await;
    }
    let now = session.now(&store).await?;
    let selection = arguments.selector.select(&store, true, now).await?;
    let (options, reason) = (&arguments.options, arguments.reason.as_deref());
    let ids = match selection {
        Selection::Ids(ids) if options.rate.is_none() && !options.dry_run => ids,
        selection => {
            let action = BulkAction::new(BulkKind::Restore, options.rate, reason);
            let bulk = preview(&store, &selection, None).await?;
            return request_bulk(&store, &bulk, action, options, session).await;
        }
    };
    let mut report = Report::new("restored", ids.len());
    for id in ids {
        let done = actions::restore(&store, id, &session.actor, reason).await;
        report.add(id, done.map(|()| ActionResult { state: "failed", text: "is restored" }))?;
    }
    report.render(session)
}

/// Takes back what a bulk has discarded.
async fn restore_bulk(
    store: &Store,
    id: i64,
    arguments: &Restore,
    session: &Session,
) -> Result<(), Failure> {
    let (bulk, options) = (find_discarding(store, id).await?, &arguments.options);
    if options.dry_run {
        if session.out.is_json() {
            return session.out.document(&json!({"preview": {"count": bulk.done}, "bulk": null}));
        }
        return session.out.print(format!("{} executions would be restored.", bulk.done));
    }
    check_discarded(&bulk)?;
    confirm(&format!("{} executions will be restored", bulk.done), options.yes)?;
    let by = (&session.actor, arguments.reason.as_deref());
    let restoring = create_restore(store, &bulk, options.rate, by).await?;
    follow(store, restoring, options.detach, session).await
}
