//! Striking a fault: bring an execution into the step, strike, and watch it come to its end.
//!
//! A fault counts only if an execution was inside. At a fault point the process must have died there
//! by SIGKILL, or stood there while a server was killed; for every other fault an attempt was open, or a ticket on its way, at the moment of
//! the strike. The time of recovery runs from the strike to the end of the last execution that was
//! inside, and holds whatever the task itself still takes.

mod hand;
mod network;
mod point;
mod process;
mod server;

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;
use uuid::Uuid;

use super::arena::{Arena, Seat};
use super::fault::{Fault, Program};
use super::oracle::Violation;
use super::rows;

/// What became of a try.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was struck.
    Struck {
        /// What was inside.
        executions: Vec<Uuid>,
        /// Until the last of it had come to its end.
        recovery: Duration,
    },
    /// No execution was inside.
    Missed(String),
    /// A promise was broken.
    Broken(Violation),
}

/// Strikes a fault in an arena. Afterwards the arena is whole again.
///
/// # Errors
///
/// What went wrong with the try itself; it counts as missed.
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
        Fault::Hand(deed) => hand::strike(arena, deed).await,
    };
    if fault.is_of_server() {
        // One that stood at a point and was not told to go on would stand there for ever.
        for program in [Program::Scheduler, Program::Worker] {
            arena.kill(program, Seat::Victim);
        }
    }
    arena.calm()?;
    arena.complete()?;
    outcome
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

    /// Watches until all that was inside has come to its end.
    pub(super) async fn recovery(self, arena: &Arena, fault: &str) -> Outcome {
        if self.executions.is_empty() {
            return Outcome::Missed("no execution was inside".to_owned());
        }
        match arena.ended(&self.executions, arena.patience.recovery).await {
            Ok(()) => Outcome::Struck { executions: self.executions, recovery: self.at.elapsed() },
            Err(left) => {
                let execution = left[0];
                let row = rows::told(arena.pool(), execution).await;
                Outcome::Broken(Violation::Lost { execution, row, fault: fault.to_owned() })
            }
        }
    }
}
