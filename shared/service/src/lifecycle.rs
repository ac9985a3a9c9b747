//! From start to an orderly end: two shutdown tokens, the tasks in between, the exit status.
//!
//! ```text
//! running ──first signal, or a task ended──▶ stopping ──second signal, or grace over──▶ hurrying
//!                                          (soft token)                              (hard token)
//! ```
//!
//! - *Soft*: begin nothing new, let running work end. *Hard*: end running work now. The hard token
//!   is cancelled only after the soft one.
//! - Tasks live as long as the program. One that ends by itself, with whatever result, or panics,
//!   triggers the shutdown and makes the exit status 1: a restart is better than half a program.
//! - The program ends when all tasks have, and in any case [`HARD_STOP_TIMEOUT`] after the hard stop.
//!
//! It does not abort tasks one by one: what is still running then ends with the runtime. A crash
//! needs no shutdown at all; the leases see to that.

mod phase;
mod signals;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use phase::{Event, Phase};
pub use signals::Signals;

/// How long tasks may take to end after the hard stop.
pub const HARD_STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// A program's shutdown and tasks. Cheap to clone; the clones are the same lifecycle.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    shared: Arc<Shared>,
    grace: Duration,
}

#[derive(Debug)]
struct Shared {
    soft: CancellationToken,
    hard: CancellationToken,
    tracker: TaskTracker,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    faulty: bool,
    next_task: u64,
    running: BTreeMap<u64, String>,
}

/// The outcome of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitOutcome {
    /// Stopped by a signal, everything finished; exit status 0.
    Cleanly,
    /// A task broke or did not end in time; exit status 1.
    Broken,
}

impl From<ExitOutcome> for ExitCode {
    fn from(ended: ExitOutcome) -> Self {
        match ended {
            ExitOutcome::Cleanly => Self::SUCCESS,
            ExitOutcome::Broken => Self::FAILURE,
        }
    }
}

impl Lifecycle {
    /// Makes a running program. `grace` is the longest time from the soft to the hard stop.
    pub fn new(grace: Duration) -> Self {
        let state =
            State { phase: Phase::Running, faulty: false, next_task: 0, running: BTreeMap::new() };
        let shared = Shared {
            soft: CancellationToken::new(),
            hard: CancellationToken::new(),
            tracker: TaskTracker::new(),
            state: Mutex::new(state),
        };
        Self { shared: Arc::new(shared), grace }
    }

    /// Returns the token that is cancelled when nothing new may begin.
    pub fn soft(&self) -> CancellationToken {
        self.shared.soft.clone()
    }

    /// Returns the token that is cancelled when running work must end.
    pub fn hard(&self) -> CancellationToken {
        self.shared.hard.clone()
    }

    /// Requests the end, as a signal does: soft the first time, hard the second.
    pub fn stop(&self, why: &str) {
        let before = self.shared.lock().phase;
        let after = self.shared.apply(Event::Stop);
        match (before, after) {
            (_, Phase::Running) | (Phase::HardStopping, _) => {}
            (_, Phase::Stopping) => tracing::info!(
                shutdown.grace_ms = self.grace.as_millis() as u64,
                "stopping ({why}): nothing new is begun, running work may end"
            ),
            (_, Phase::HardStopping) => {
                tracing::warn!("stopping at once ({why}): running work is ended");
            }
        }
    }

    /// Runs a task that lives as long as the program. Its failure, or its end before a shutdown, is logged here and
    /// nowhere else.
    pub fn spawn<F, E>(&self, name: impl Into<String>, future: F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let name = name.into();
        let id = self.shared.register_task(name.clone());
        let shared = Arc::clone(&self.shared);
        // Two tasks, so that a panic of the inner one is a value to the outer one.
        let task = self.shared.tracker.spawn(future);
        self.shared.tracker.spawn(async move {
            let outcome = match task.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(format!("failed: {error:#}")),
                Err(error) => Err(format!("panicked: {error}")),
            };
            shared.task_ended(id, &name, outcome);
        });
    }

    /// Waits for a signal or a task's end, then through the shutdown. The last call of `main`.
    pub async fn run_until_stopped(self, mut signals: Signals) -> ExitOutcome {
        let forward = async {
            loop {
                let name = signals.next().await;
                self.stop(name);
            }
        };
        tokio::select! {
            ended = self.wait_until_ended() => ended,
            never = forward => match never as Infallible {},
        }
    }

    /// Like [`Self::run_until_stopped`] without signals: waits until [`Lifecycle::stop`] was called or a task ended,
    /// and then through the shutdown.
    pub async fn wait_until_ended(&self) -> ExitOutcome {
        let shared = &self.shared;
        shared.soft.cancelled().await;
        shared.tracker.close();
        let grace = async {
            tokio::select! {
                () = shared.hard.cancelled() => {}
                () = tokio::time::sleep(self.grace) => {
                    tracing::warn!(
                        tasks = %shared.names(),
                        "the grace of {} ms is over: running work is ended",
                        self.grace.as_millis() as u64
                    );
                    shared.apply(Event::GraceOver);
                }
            }
            tokio::time::sleep(HARD_STOP_TIMEOUT).await;
        };
        let all_ended = tokio::select! {
            () = shared.tracker.wait() => true,
            () = grace => false,
        };
        if !all_ended {
            tracing::error!(
                tasks = %shared.names(),
                "these did not end within {} s of the hard stop and are left behind",
                HARD_STOP_TIMEOUT.as_secs()
            );
        }
        if all_ended && !shared.lock().faulty { ExitOutcome::Cleanly } else { ExitOutcome::Broken }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register_task(&self, name: String) -> u64 {
        let mut state = self.lock();
        let id = state.next_task;
        state.next_task += 1;
        state.running.insert(id, name);
        id
    }

    fn task_ended(&self, id: u64, name: &str, outcome: Result<(), String>) {
        let event = if outcome.is_ok() { Event::TaskDone } else { Event::TaskBroke };
        let early = {
            let mut state = self.lock();
            state.running.remove(&id);
            state.phase == Phase::Running
        };
        match outcome {
            Ok(()) if early => tracing::error!(
                task.name = name,
                "task `{name}` ended by itself; the program cannot do without it and stops"
            ),
            Ok(()) => tracing::debug!(task.name = name, "task `{name}` has ended"),
            Err(how) if early => tracing::error!(
                task.name = name,
                "task `{name}` {how}; the program cannot do without it and stops"
            ),
            Err(how) => {
                tracing::error!(task.name = name, "task `{name}` {how} during the shutdown");
            }
        }
        self.apply(event);
    }

    /// Applies an event and cancels the tokens of the new phase.
    fn apply(&self, event: Event) -> Phase {
        let phase = {
            let mut state = self.lock();
            let (phase, fault) = state.phase.next(event);
            state.phase = phase;
            state.faulty |= fault;
            phase
        };
        if phase != Phase::Running {
            self.soft.cancel();
        }
        if phase == Phase::HardStopping {
            self.hard.cancel();
        }
        phase
    }

    fn names(&self) -> String {
        let state = self.lock();
        state.running.values().map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests;
