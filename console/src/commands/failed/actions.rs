//! Requeue, discard, restore: of one or of several, each by itself; of many, as a bulk.
//!
//! Several are not one transaction: what can be done is done, what cannot is told, and the exit
//! status is that of the worst. Doing it again does only the rest.

use serde_json::{Value, json};
use sexton_model::bulk::BulkKind;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::pool::PoolName;
use sexton_service::fault;
use sexton_store::bulk::{BulkSelector, NewBulk, create};
use sexton_store::operator::{self, AuditContext, OperatorError, RequeueOptions};
use sexton_store::{Store, executions, instances};

use super::bulk::{BulkAction, Verifier, request_bulk};
use super::requeue_request;
use super::selector::Selection;
use super::watch::{find, follow};
use super::{Discard, Requeue, Restore};
use crate::commands::executions::action_failure;
use crate::commands::reference;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Progress, ago, line};

pub(super) async fn requeue(arguments: &Requeue, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let selection = arguments.selector.select(&store, false, now).await?;
    let seen = arguments.attempt.and_then(AttemptNumber::new);
    if let Some(pool) = &arguments.to_pool {
        check_pool(&store, pool, arguments.force).await?;
    }
    let pool = arguments.to_pool.as_ref().map(PoolName::as_str);
    let options = &arguments.options;
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
        _ if seen.is_some() => return Err(attempt_needs_single_id()),
        selection => {
            let (canary, reason) = (arguments.canary, arguments.reason.as_deref());
            let action = BulkAction { kind: BulkKind::Requeue, canary, pool, verify, reason };
            return request_bulk(&store, &selection, action, options, session).await;
        }
    };
    if seen.is_some() && ids.len() > 1 {
        return Err(attempt_needs_single_id());
    }
    if ids.len() > 1 {
        confirm(&format!("{} executions will be requeued", ids.len()), options.yes)?;
    }
    let by = AuditContext { actor: &session.actor, reason: arguments.reason.as_deref() };
    let with_verify_task = requeue_request::count_with_verify_task(&store, &ids).await?;
    if with_verify_task > 0 && verify == Verifier::Tasks {
        let request = requeue_request::RequeueRequest {
            ids: &ids,
            attempt: seen,
            pool,
            detach: options.detach,
        };
        return requeue_request::requeue(&store, request, by, session).await;
    }
    let terms = RequeueOptions { pool, unverified: with_verify_task > 0 };
    let mut report = Report::new("requeued", "pending", ids.len());
    for id in ids {
        let done = requeue_execution(&store, id, seen, terms, by).await;
        if done.is_ok() {
            fault::point("console.requeued");
        }
        report.add(id, done)?;
    }
    report.render(session)
}

fn attempt_needs_single_id() -> Failure {
    let text = "--attempt goes with one id; each execution has attempts of its own";
    Failure::Usage(text.to_owned())
}

/// With the number that the operator saw, never a later failure than the one that was looked at;
/// without, whichever there is now.
async fn requeue_execution(
    store: &Store,
    id: ExecutionId,
    seen: Option<AttemptNumber>,
    terms: RequeueOptions<'_>,
    by: AuditContext<'_>,
) -> Result<(), Failure> {
    let seen = if let Some(seen) = seen {
        seen
    } else {
        let row = executions::find(store, id.get()).await?.ok_or_else(|| reference::missing(id))?;
        AttemptNumber::new(row.attempt).unwrap_or(AttemptNumber::FIRST)
    };
    match operator::requeue_with(store, id, seen, terms, by, None).await {
        Ok(()) => Ok(()),
        Err(error) => Err(conflict(store, error, "requeued").await),
    }
}

/// A pool in which a worker is at work, or one that somebody insists on.
pub(super) async fn check_pool(store: &Store, pool: &PoolName, force: bool) -> Result<(), Failure> {
    let all = instances::list(store, None).await?;
    let mut pools: Vec<&str> =
        all.iter().flat_map(|it| it.pools.iter().map(String::as_str)).collect();
    if force || pools.contains(&pool.as_str()) {
        return Ok(());
    }
    pools.sort_unstable();
    pools.dedup();
    Err(Failure::NotFound(format!(
        "no worker consumes from the pool {pool}; there are {}; --force sends it there all the same, \
         where it waits for one",
        if pools.is_empty() { "none".to_owned() } else { line(&pools.join(", "), 500) }
    )))
}

/// Why it was not done, and if somebody else was faster, who that was and when.
pub(super) async fn conflict(store: &Store, error: OperatorError, done: &str) -> Failure {
    let OperatorError::Conflict { id, .. } = error else { return action_failure(error, done) };
    let failure = action_failure(error, done);
    let actions = operator::list_by_execution(store, id.get()).await.unwrap_or_default();
    let now = sexton_store::status::clock(store).await;
    match (failure, actions.last(), now) {
        (Failure::NothingDone(text), Some(last), Ok(now)) => Failure::NothingDone(format!(
            "{text}; the last that was done to it: {} by {}, {}",
            line(&last.action, 50),
            line(&last.actor, 200),
            ago(last.at, now)
        )),
        (failure, ..) => failure,
    }
}

pub(super) async fn discard(arguments: &Discard, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let selection = arguments.selector.select(&store, false, now).await?;
    let (options, reason) = (&arguments.options, Some(arguments.reason.as_str()));
    let ids = match selection {
        Selection::Ids(ids) if options.rate.is_none() && !options.dry_run => ids,
        selection => {
            let action = BulkAction::new(BulkKind::Discard, reason);
            return request_bulk(&store, &selection, action, options, session).await;
        }
    };
    let noun = if ids.len() == 1 { "failed execution" } else { "failed executions" };
    confirm(&format!("{} {noun} will be given up", ids.len()), options.yes)?;
    let by = AuditContext { actor: &session.actor, reason };
    let mut report = Report::new("discarded", "discarded", ids.len());
    for id in ids {
        let done = match operator::discard(&store, id, by, None).await {
            Ok(()) => {
                fault::point("console.discarded");
                Ok(())
            }
            Err(error) => Err(conflict(&store, error, "discarded").await),
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
            let action = BulkAction::new(BulkKind::Restore, reason);
            return request_bulk(&store, &selection, action, options, session).await;
        }
    };
    let by = AuditContext { actor: &session.actor, reason };
    let mut report = Report::new("restored", "failed", ids.len());
    for id in ids {
        let done = match operator::restore(&store, id, by, None).await {
            Ok(()) => {
                fault::point("console.restored");
                Ok(())
            }
            Err(error) => Err(conflict(&store, error, "restored").await),
        };
        report.add(id, done)?;
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
    let bulk = find(store, id).await?;
    if bulk.kind != BulkKind::Discard.as_str() {
        let text = format!("bulk {id} was a {}, there is nothing to restore", bulk.kind);
        return Err(Failure::Usage(text));
    }
    if !matches!(bulk.state.as_str(), "done" | "stopped") {
        let text = format!(
            "bulk {id} is {}, and would go on discarding; stop it first: sexton failed bulk stop {id}",
            bulk.state
        );
        return Err(Failure::NothingDone(text));
    }
    if arguments.options.dry_run {
        if session.out.is_json() {
            return session.out.document(&json!({"preview": {"count": bulk.done}, "bulk": null}));
        }
        return session.out.print(format!("{} executions would be restored.", bulk.done));
    }
    if bulk.done == 0 {
        let text = format!("bulk {id} has discarded nothing; nothing was done");
        return Err(Failure::NothingDone(text));
    }
    confirm(&format!("{} executions will be restored", bulk.done), arguments.options.yes)?;
    let new = NewBulk {
        kind: BulkKind::Restore,
        selector: BulkSelector::Bulk(id),
        previewed_at: session.now(store).await?,
        rate: arguments.options.rate,
        canary: None,
        pool: None,
        verify: None,
    };
    let by = AuditContext { actor: &session.actor, reason: arguments.reason.as_deref() };
    let new = create(store, &new, by).await?;
    follow(store, new, arguments.options.detach, session).await
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
    fn add(&mut self, id: ExecutionId, result: Result<(), Failure>) -> Result<(), Failure> {
        self.progress.step();
        match result {
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
