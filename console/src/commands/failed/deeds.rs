//! Requeue, discard, restore: of one or of several, each by itself.
//!
//! Several are not one transaction: what can be done is done, what cannot is told, and the exit
//! status is that of the worst. Doing it again does only the rest.

use serde_json::{Value, json};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_service::fault;
use sexton_store::operator::{self, By};
use sexton_store::{Store, executions};

use super::{Discard, Requeue, Restore};
use crate::commands::executions::not_done;
use crate::commands::reference;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::Progress;

pub(super) async fn requeue(arguments: &Requeue, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let ids = resolve(&store, &arguments.ids).await?;
    let seen = arguments.attempt.and_then(AttemptNumber::new);
    if seen.is_some() && ids.len() > 1 {
        let text = "--attempt goes with one id; each execution has attempts of its own";
        return Err(Failure::Usage(text.to_owned()));
    }
    if ids.len() > 1 {
        confirm(&format!("{} executions will be requeued", ids.len()), arguments.yes)?;
    }
    let by = By { actor: &session.actor, reason: arguments.reason.as_deref() };
    let mut report = Report::new("requeued", "pending", ids.len());
    for id in ids {
        let done = requeue_one(&store, id, seen, by).await;
        if done.is_ok() {
            fault::point("console.requeued");
        }
        report.add(id, done)?;
    }
    report.tell(session)
}

/// With the number that the operator saw, never a later failure than the one that was looked at;
/// without, whichever there is now.
async fn requeue_one(
    store: &Store,
    id: ExecutionId,
    seen: Option<AttemptNumber>,
    by: By<'_>,
) -> Result<(), Failure> {
    let seen = if let Some(seen) = seen {
        seen
    } else {
        let row = executions::find(store, id.get()).await?.ok_or_else(|| reference::missing(id))?;
        AttemptNumber::new(row.attempt).unwrap_or(AttemptNumber::FIRST)
    };
    operator::requeue(store, id, seen, by, None).await.map_err(|error| not_done(error, "requeued"))
}

pub(super) async fn discard(arguments: &Discard, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let ids = resolve(&store, &arguments.ids).await?;
    let noun = if ids.len() == 1 { "failed execution" } else { "failed executions" };
    confirm(&format!("{} {noun} will be given up", ids.len()), arguments.yes)?;
    let by = By { actor: &session.actor, reason: Some(&arguments.reason) };
    let mut report = Report::new("discarded", "discarded", ids.len());
    for id in ids {
        let done = operator::discard(&store, id, by, None).await;
        if done.is_ok() {
            fault::point("console.discarded");
        }
        report.add(id, done.map_err(|error| not_done(error, "discarded")))?;
    }
    report.tell(session)
}

pub(super) async fn restore(arguments: &Restore, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let ids = resolve(&store, &arguments.ids).await?;
    let by = By { actor: &session.actor, reason: arguments.reason.as_deref() };
    let mut report = Report::new("restored", "failed", ids.len());
    for id in ids {
        let done = operator::restore(&store, id, by, None).await;
        if done.is_ok() {
            fault::point("console.restored");
        }
        report.add(id, done.map_err(|error| not_done(error, "restored")))?;
    }
    report.tell(session)
}

/// Every id is understood before anything is done; one that is given twice is meant once.
async fn resolve(store: &Store, texts: &[String]) -> Result<Vec<ExecutionId>, Failure> {
    let mut ids = Vec::with_capacity(texts.len());
    for text in texts {
        let id = ExecutionId::new(reference::execution(store, text).await?);
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
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
    fn tell(self, session: &Session) -> Result<(), Failure> {
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
                .try_for_each(|id| session.out.say(format!("{id} is {}.", self.done)))?;
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
        Err(Failure::Told { exit, message: message.join("\n") })
    }
}
