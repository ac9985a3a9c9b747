//! Whether the database takes this worker's writes, as all its slots see it.
//!
//! The first statement that fails closes the gate: idle slots cancel their consumers and wait, so that no
//! ticket is delivered to a worker that could not open it. A probe, which is a committed write, ends that.
//!
//! A server can take the probe and refuse opens all the same (a table space that is full). So after a refused
//! open the gate is only ajar: one slot of each pool consumes, one ticket at a time, until an open is written.

mod trials;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use sexton_model::id::ProcessId;
use sexton_model::pool::PoolName;
use sexton_service::fault;
use sexton_service::outage::Reachability;
use sexton_store::answer::within;
use sexton_store::{Store, StoreError, instances};
use tokio::sync::watch;

pub(crate) use self::trials::TrialPermit;
use self::trials::Trials;

/// Before a database that has failed is probed; doubled with each trial that failed.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// For a probe. Short: one that was sent while the network swallowed everything is not answered
/// afterwards either, and the next one is.
const PROBE: Duration = Duration::from_secs(3);
/// How long one statement outside the journal may take.
const LIMIT: Duration = Duration::from_secs(10);
/// A trial that no ticket has come to by then ends with an open gate: the queues are empty.
const IDLE_TRIAL: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Every slot may consume.
    Open,
    /// One slot of each pool may.
    Trial,
    /// None may.
    Closed,
}

/// What a slot may do.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Consume.
    All,
    /// Consume one ticket at a time, for its pool.
    Trial(TrialPermit),
}

/// The gate. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    state: watch::Sender<State>,
    trials: Trials,
    /// An open was refused, and none was written since.
    doubted: Arc<AtomicBool>,
    /// Trials since the last open that was written.
    rounds: Arc<AtomicU32>,
    /// Whether the last probe was committed.
    takes_probes: Arc<AtomicBool>,
    reachability: Reachability,
}

impl Gate {
    /// Open: the start has reached the database.
    pub(crate) fn new(reachability: Reachability) -> Self {
        Self {
            state: watch::Sender::new(State::Open),
            trials: Trials::default(),
            doubted: Arc::default(),
            rounds: Arc::default(),
            takes_probes: Arc::default(),
            reachability,
        }
    }

    /// A statement failed.
    pub(crate) fn failed(&self, error: &StoreError) {
        self.reachability.failed(error);
        self.state.send_replace(State::Closed);
    }

    /// A statement succeeded.
    pub(crate) fn answered(&self) {
        self.reachability.answered();
    }

    /// The write that a delivery needs was not written; its failure was reported already.
    pub(crate) fn open_failed(&self) {
        self.doubted.store(true, Ordering::Relaxed);
    }

    /// The write that a delivery needs was written: a trial has succeeded.
    pub(crate) fn open_written(&self) {
        self.doubted.store(false, Ordering::Relaxed);
        self.rounds.store(0, Ordering::Relaxed);
        let end_trial = |state: &mut State| {
            let trial = *state == State::Trial;
            if trial {
                *state = State::Open;
            }
            trial
        };
        self.state.send_if_modified(end_trial);
    }

    /// Whether the database takes other writes than those that deliveries need.
    pub(crate) fn refuses_opens(&self) -> bool {
        self.doubted.load(Ordering::Relaxed) && self.takes_probes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_open(&self) -> bool {
        *self.state.borrow() == State::Open
    }

    /// What a slot of `pool` may do now; `None`: nothing.
    pub(crate) fn admission(&self, pool: &PoolName) -> Option<Admission> {
        let state = *self.state.borrow();
        match state {
            State::Open => Some(Admission::All),
            State::Trial => self.permit(pool).map(Admission::Trial),
            State::Closed => None,
        }
    }

    /// The same, as soon as it may do anything. Cancel-safe.
    pub(crate) async fn admitted(&self, pool: &PoolName) -> Admission {
        let mut state = self.state.subscribe();
        loop {
            if let Some(admission) = self.admission(pool) {
                return admission;
            }
            // The sender lives in `self`, so the wait cannot fail.
            let _ = state.changed().await;
        }
    }

    /// Waits until a slot with `admission` may do something else. Cancel-safe.
    pub(crate) async fn ends(&self, admission: &Admission) {
        let expected = match admission {
            Admission::All => State::Open,
            Admission::Trial(_) => State::Trial,
        };
        let _ = self.state.subscribe().wait_for(|state| *state != expected).await;
    }

    /// For a slot of `pool` to try opens with one ticket; one slot of a pool has it at a time.
    pub(crate) fn permit(&self, pool: &PoolName) -> Option<TrialPermit> {
        self.trials.permit(pool, &self.state)
    }

    /// Waits until the database takes writes. Cancel-safe.
    pub(crate) async fn answering(&self) {
        let _ = self.state.subscribe().wait_for(|state| *state != State::Closed).await;
    }

    /// Runs a statement outside the journal: bounded, and its result is reported to the gate.
    ///
    /// A server that vanished without a word leaves the client waiting for ever otherwise; the
    /// abandoned connection is discarded.
    pub(crate) async fn ask<T>(
        &self,
        statement: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let answer = within(LIMIT, statement).await;
        match &answer {
            Ok(_) => self.answered(),
            Err(StoreError::Data(_)) => {}
            Err(error) => self.failed(error),
        }
        answer
    }

    /// Opens the gate, or sets it ajar, whenever the database takes writes again. Runs as long as the worker.
    pub(crate) async fn probe(self, store: Store, worker: ProcessId) {
        let longest = fault::time(LONGEST_PAUSE, "GATE_PAUSE_MS");
        loop {
            let _ = self.state.subscribe().wait_for(|state| *state == State::Closed).await;
            tokio::time::sleep(pause(self.rounds.load(Ordering::Relaxed), longest)).await;
            while !self.probe_succeeds(&store, worker).await {
                tokio::time::sleep(PAUSE).await;
            }
            if self.doubted.load(Ordering::Relaxed) {
                self.rounds.fetch_add(1, Ordering::Relaxed);
                self.state.send_replace(State::Trial);
                self.end_idle_trial().await;
            } else {
                self.state.send_replace(State::Open);
            }
        }
    }

    async fn probe_succeeds(&self, store: &Store, worker: ProcessId) -> bool {
        let probed = within(PROBE, instances::probe_write(store, worker)).await;
        match &probed {
            Ok(true) => self.reachability.answered(),
            // A restored backup has forgotten the row; the next heartbeat inserts it.
            Ok(false) => {}
            Err(error) => self.reachability.failed(error),
        }
        let succeeded = matches!(probed, Ok(true));
        self.takes_probes.store(succeeded, Ordering::Relaxed);
        succeeded
    }

    /// Waits for a trial's end, and opens the gate if no slot has a ticket to try with.
    async fn end_idle_trial(&self) {
        let mut state = self.state.subscribe();
        while tokio::time::timeout(IDLE_TRIAL, state.wait_for(|state| *state != State::Trial))
            .await
            .is_err()
        {
            if !self.trials.has_ticket() {
                self.state.send_if_modified(|state| {
                    let trial = *state == State::Trial;
                    if trial {
                        *state = State::Open;
                    }
                    trial
                });
            }
        }
    }
}

/// Before the next probe, after so many trials that failed.
fn pause(rounds: u32, longest: Duration) -> Duration {
    PAUSE.saturating_mul(2_u32.saturating_pow(rounds)).min(longest)
}

#[cfg(test)]
mod tests;
