//! `sexton failed requeue`, `discard` and `restore`: of one or of several, each by itself; of many, as a bulk.
//!
//! Several are not one transaction: what can be done is done, what cannot is reported, and the exit
//! status is that of the worst. Doing it again does only the rest.

use serde_json::{Value, json};
use sexton_model::bulk::BulkKind;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::pool::PoolName;
use sexton_operations::bulks::request::{
    BulkAction, Verifier, check_discarded, create_restore, find_discarding,
};
use sexton_operations::bulks::verified_requeue;
use sexton_operations::error::{InvalidRequest, OperationError};
use sexton_operations::failed::actions::{self, check_pool};
use sexton_operations::failed::selection::Selection;
use sexton_store::Store;
use sexton_store::operator::RequeueOptions;

use super::{Discard, Requeue, Restore};
use crate::commands::bulks::{follow, request_bulk};
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::Progress;

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
            return request_bulk(&store, &selection, action, options, session).await;
        }
    };
    if seen.is_some() && ids.len() > 1 {
        return Err(InvalidRequest::AttemptNeedsSingleId.into());
    }
    if ids.len() > 1 {
        confirm(&format!("{} executions will be requeued", ids.len()), options.yes)?;
    }
    let by = (&session.actor, reason);
    let with_verify_task = verified_requeue::count_with_verify_task(&store, &ids).await?;
    if with_verify_task > 0 && verify == Verifier::Tasks {
        let id = verified_requeue::requeue(&store, &ids, seen, pool, by).await?;
        return follow_verified(&store, id, options.detach, session).await;
    }
    let terms = RequeueOptions { pool, unverified: with_verify_task > 0 };
    let mut report = Report::new("requeued", "pending", ids.len());
    for id in ids {
        report.add(id, actions::requeue(&store, id, seen, terms, by).await)?;
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
            return request_bulk(&store, &selection, action, options, session).await;
        }
    };
    let noun = if ids.len() == 1 { "failed execution" } else { "failed executions" };
    confirm(&format!("{} {noun} will be given up", ids.len()), options.yes)?;
    let mut report = Report::new("discarded", "discarded", ids.len());
    for id in ids {
        report.add(id, actions::discard(&store, id, &session.actor, reason).await)?;
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
            return request_bulk(&store, &selection, action, options, session).await;
        }
    };
    let mut report = Report::new("restored", "failed", ids.len());
    for id in ids {
        report.add(id, actions::restore(&store, id, &session.actor, reason).await)?;
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

/// What became of each.
struct Report {
    done: &'static str,
    state: &'static str,
    results: Vec<(ExecutionId, Option<Failure>)>,
    progress: Progress,
}

impl Report {
    fn new(done: &'static str, state: &'static str, total: usize) -> Self {
        Self { done, state, results: Vec::with_capacity(total), progress: Progress::new(total) }
    }

    /// Notes a result. A database that is away is the end: nothing further can be done.
    fn add(&mut self, id: ExecutionId, result: Result<(), OperationError>) -> Result<(), Failure> {
        self.progress.step();
        match result.map_err(Failure::from) {
            Err(failure @ (Failure::Unreachable(_) | Failure::Schema(_))) => {
                let before = self.results.iter().filter(|(_, failure)| failure.is_none()).count();
                Err(Failure::Unreachable(format!(
                    "{failure}; {before} were {} before that, whether {id} was is not known",
                    self.done
                )))
            }
            result => {
                self.results.push((id, result.err()));
                Ok(())
            }
        }
    }

    /// Says what became of each; the array of `--json` has them all, whatever the status.
    fn render(self, session: &Session) -> Result<(), Failure> {
        // Gone from the terminal before the answer is written there.
        drop(self.progress);
        let done = self.results.iter().filter(|(_, failure)| failure.is_none());
        if session.out.is_json() {
            let results = self.results.iter().map(|(id, failure)| match failure {
                None => json!({"id": id, "done": true, "state": self.state, "error": null}),
                Some(failure) => {
                    json!({"id": id, "done": false, "state": null, "error": failure.to_string()})
                }
            });
            session.out.document(&results.collect::<Value>())?;
        } else {
            done.map(|(id, _)| id)
                .try_for_each(|id| session.out.print(format!("{id} is {}.", self.done)))?;
        }
        let failures: Vec<&Failure> =
            self.results.iter().filter_map(|(_, failure)| failure.as_ref()).collect();
        let Some(exit) = failures.iter().map(|failure| failure.exit()).max() else {
            return Ok(());
        };
        let mut message: Vec<String> = failures.iter().map(ToString::to_string).collect();
        if self.results.len() > 1 {
            let (left, total) = (failures.len(), self.results.len());
            message.push(format!("{left} of {total} were not {}", self.done));
        }
        Err(Failure::Reported { exit, message: message.join("\n") })
    }
}
