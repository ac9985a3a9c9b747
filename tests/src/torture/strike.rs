//! Striking a fault: bring an execution into the step, strike, and watch it come to its end.
//!
//! A fault counts only if an execution was inside. At a fault point the process must have died there
//! by SIGKILL, or stood there while a server was killed; for every other fault an attempt was open, or a
//! ticket on its way, at the moment of the strike. The time of recovery runs from the strike to the end of
//! the last execution that was inside, and holds whatever the task itself still takes.

mod bulk;
mod failure;
mod manual;
mod network;
mod point;
mod process;
mod server;

use std::time::Duration;

use anyhow::Result;
use sexton_model::id::ExecutionId;
use sexton_store::operator;
use tokio::time::Instant;
use uuid::Uuid;

use super::arena::{Arena, ME, Role};
use super::fault::{Fault, Program};
use super::oracle::Violation;
use super::{jobs, queues, rows};

/// What became of a try.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was struck.
    Struck {
        /// What was inside.
        executions: Vec<Uuid>,
        /// Until the last of it had come to its end; `None`: it had before the strike.
        recovery: Option<Duration>,
    },
    /// No execution was inside.
    Missed(String),
    /// A promise was broken.
    Broken(Violation),
}

impl Outcome {
    /// What was inside had come to its end before: there is nothing that took time to recover.
    fn of_the_past(self) -> Self {
        match self {
            Self::Struck { executions, .. } => Self::Struck { executions, recovery: None },
            other => other,
        }
    }
}

/// Strikes a fault in an arena. Afterwards the arena is whole again.
///
/// # Errors
///
/// What went wrong with the try itself counts as missed, such as a preparation that did not come about.
/// What did not follow from the strike, or from what a hand did, is reported as a broken promise.
pub(super) async fn strike(arena: &mut Arena, fault: Fault) -> Result<Outcome> {
    arena.storm = match fault {
        Fault::At(_, server) => Some(server),
        _ => None,
    };
    let outcome = match fault {
        Fault::Point(name) | Fault::At(name, _) => point::strike(arena, name).await,
        Fault::Process(program, blow) => process::strike(arena, program, blow).await,
        Fault::Server(server, ruin) => server::strike(arena, server, ruin).await,
        Fault::Network(program, server, loss) => {
            network::strike(arena, program, server, loss).await
        }
        Fault::Manual(action) if action.is_of_bulk() => bulk::strike(arena, action).await,
        Fault::Manual(action) => manual::strike(arena, action).await,
    };
    if fault.is_of_server() {
        // A process that stands at a point waits there until it is released.
        for program in [Program::Scheduler, Program::Worker] {
            arena.kill(program, Role::Victim);
        }
    }
    arena.calm()?;
    arena.complete()?;
    let outcome = outcome.or_else(failure::into_outcome);
    if !matches!(outcome, Ok(Outcome::Struck { .. })) {
        clear(arena).await;
    }
    outcome
}

/// Cancels what waits in the pool that nobody serves, and empties its queue: a try that did not come to its
/// end would leave it there for ever, as something that a later fault did not bring to its end. A queue that
/// came back dead cannot be emptied, and no later try would find its ticket there: it is deleted, as a person
/// would do who reads what the relay says of it.
async fn clear(arena: &Arena) {
    let waiting =
        format!("e.pool = '{}' AND e.state IN ('pending', 'retrying')", jobs::UNSERVED_POOL);
    for id in rows::ids(arena.pool(), &waiting).await.unwrap_or_default() {
        let id = ExecutionId::new(id);
        if let Err(error) = operator::cancel(arena.platform.store(), id, ME, None).await {
            println!("torture: arena {}: {id} is left where it is: {error}", arena.number);
        }
    }
    // A queue that is not empty looks to the reconciler as if everything were still in it.
    let emptying = async {
        let queue = arena.queue(jobs::UNSERVED_POOL)?;
        let hand = arena.hand().await?;
        let purged = hand.purge(&queue).await;
        hand.let_go().await;
        if purged.is_err() { point::mend(arena, &queue).await } else { Ok(()) }
    };
    if let Err(error) = emptying.await {
        println!(
            "torture: arena {}: the queue of nobody's pool is as it was: {error}",
            arena.number
        );
    }
}

/// A strike that has happened.
#[derive(Debug)]
pub(super) struct Struck {
    at: Instant,
    executions: Vec<Uuid>,
}

impl Struck {
    /// Now, with these inside.
    pub(super) fn now(executions: Vec<Uuid>) -> Self {
        Self { at: Instant::now(), executions }
    }

    /// With these inside, as was found out a moment later.
    pub(super) fn at(at: Instant, executions: Vec<Uuid>) -> Self {
        Self { at, executions }
    }

    /// Leaves out what has been published between the look at a scheduler's unpublished tickets and the strike.
    async fn still_inside(&mut self, arena: &Arena, program: Program) -> Result<()> {
        if program == Program::Scheduler {
            let unpublished = rows::ids(arena.pool(), "e.ticket_published_at IS NULL").await?;
            self.executions.retain(|id| unpublished.contains(id));
        }
        Ok(())
    }

    /// Watches until all that was inside has come to its end.
    pub(super) async fn recovery(self, arena: &Arena, fault: &str) -> Outcome {
        if self.executions.is_empty() {
            return Outcome::Missed("no execution was inside".to_owned());
        }
        match arena.ended(&self.executions, arena.timeouts.recovery).await {
            Ok(()) => {
                let recovery = Some(self.at.elapsed());
                Outcome::Struck { executions: self.executions, recovery }
            }
            Err(left) => {
                let execution = left[0];
                let row = queues::describe(arena, execution).await;
                Outcome::Broken(Violation::Lost { execution, row, fault: fault.to_owned() })
            }
        }
    }
}
