//! The results of an action on several executions, each by itself.
//!
//! Several are not one transaction: what can be done is done, what cannot is reported, and the exit status is that of
//! the worst. The same command again does only the rest.

use serde_json::{Value, json};
use sexton_model::id::ExecutionId;
use sexton_operations::error::OperationError;

use crate::failure::Failure;
use crate::session::Session;
use crate::show::Progress;

/// What an action made of an execution.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActionResult {
    /// Its state afterwards.
    pub(super) state: &'static str,
    /// The same as a predicate: `is requeued`.
    pub(super) text: &'static str,
}

/// The results, in their order.
pub(super) struct Report {
    done: &'static str,
    results: Vec<(ExecutionId, Result<ActionResult, Failure>)>,
    progress: Progress,
}

impl Report {
    /// Begins a report about `total` executions; `done` is the action's participle.
    pub(super) fn new(done: &'static str, total: usize) -> Self {
        Self { done, results: Vec::with_capacity(total), progress: Progress::new(total) }
    }

    /// Adds a result. A database that is away is the end: nothing further can be done.
    pub(super) fn add(
        &mut self,
        id: ExecutionId,
        result: Result<ActionResult, OperationError>,
    ) -> Result<(), Failure> {
        self.progress.step();
        match result.map_err(Failure::from) {
            Err(failure @ (Failure::Unreachable(_) | Failure::Schema(_))) => {
                let before = self.results.iter().filter(|(_, result)| result.is_ok()).count();
                Err(Failure::Unreachable(format!(
                    "{failure}; {before} were {} before that, whether {id} was is not known",
                    self.done
                )))
            }
            result => {
                self.results.push((id, result));
                Ok(())
            }
        }
    }

    /// Prints each result; the array of `--json` has them all, whatever the status.
    pub(super) fn render(self, session: &Session) -> Result<(), Failure> {
        // Gone from the terminal before the answer is written there.
        drop(self.progress);
        if session.out.is_json() {
            let results = self.results.iter().map(|(id, result)| match result {
                Ok(done) => json!({"id": id, "done": true, "state": done.state, "error": null}),
                Err(failure) => {
                    json!({"id": id, "done": false, "state": null, "error": failure.to_string()})
                }
            });
            session.out.document(&results.collect::<Value>())?;
        } else {
            for (id, result) in &self.results {
                if let Ok(done) = result {
                    session.out.print(format!("{id} {}.", done.text))?;
                }
            }
        }
        let failures: Vec<&Failure> =
            self.results.iter().filter_map(|(_, result)| result.as_ref().err()).collect();
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
