//! Tracks, for all slots of a worker, whether the database takes writes.
//!
//! The first failed statement closes the gate: idle slots cancel their consumers and wait, so that the broker
//! delivers no ticket to a worker that could not open it. A successful probe, which is a committed write, ends
//! that.
//!
//! A server may accept the probe and still refuse opens (a full table space). After a refused open, therefore,
//! only work that needs no open continues at once. Consumption waits longer after each failed trial; then one
//! slot of each pool consumes, one ticket at a time, until an open is written.

mod trials;

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use sexton_model::id::ProcessId;
use sexton_model::pool::PoolName;
use sexton_service::fault;
use sexton_service::reachability::Reachability;
use sexton_store::timeout::with_timeout;
use sexton_store::{Store, StoreError, instances};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

pub(crate) use self::trials::TrialPermit;
use self::trials::Trials;

/// Pause before a probe of a failed database, and before a trial, where each failed trial doubles it.
const PROBE_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause before a trial.
const MAX_TRIAL_PAUSE: Duration = Duration::from_secs(30);
/// Timeout of a probe. It is short: a probe sent while the network drops everything is never answered, and the
/// next one is.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout of one statement outside the write batcher.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// A trial without a failure for this long opens the gate: the queues are empty. Longer than any statement may
/// take.
const IDLE_TRIAL_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Every slot may consume.
    Open,
    /// One slot of each pool may consume.
    Trial,
    /// No slot may consume, but the database takes writes: results can be recorded.
    Writable,
    /// No slot may consume.
    Closed,
}

/// What a slot may do.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Consume without a limit.
    All,
    /// Consume one ticket at a time, on behalf of its pool.
    Trial(TrialPermit),
}

/// The gate. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    state: watch::Sender<State>,
    trials: Trials,
    /// Whether an open was refused since the last one that was written.
    open_was_refused: Arc<AtomicBool>,
    /// Failed trials since the last open that was written.
    failed_trials: Arc<AtomicU32>,
    /// Opens written since the start.
    opens_written: Arc<AtomicU64>,
    /// Whether the last probe was committed.
    accepts_writes: Arc<AtomicBool>,
    reachability: Reachability,
}

impl Gate {
    /// Returns an open gate: the start has reached the database.
    pub(crate) fn new(reachability: Reachability) -> Self {
        Self {
            state: watch::Sender::new(State::Open),
            trials: Trials::default(),
            open_was_refused: Arc::default(),
            failed_trials: Arc::default(),
            opens_written: Arc::default(),
            accepts_writes: Arc::new(AtomicBool::new(true)),
            reachability,
        }
    }

    /// Records a failed statement.
    pub(crate) fn record_failure(&self, error: &dyn Display) {
        self.reachability.record_failure(error);
        self.state.send_replace(State::Closed);
    }

    /// Records a successful statement.
    pub(crate) fn record_success(&self) {
        self.reachability.record_success();
    }

    /// Records that a delivery's write failed, perhaps for a reason outside the delivery; the failure itself
    /// was reported already.
    pub(crate) fn record_open_failed(&self) {
        self.open_was_refused.store(true, Ordering::Relaxed);
    }

    /// Records that a delivery's write succeeded, and with it a trial.
    pub(crate) fn record_open_written(&self) {
        self.opens_written.fetch_add(1, Ordering::Relaxed);
        self.open_if(|state| matches!(state, State::Trial | State::Writable));
    }

    /// Forgets the failed opens, and opens the gate if `may_open` accepts its state.
    fn open_if(&self, may_open: impl FnOnce(State) -> bool) {
        self.open_was_refused.store(false, Ordering::Relaxed);
        self.failed_trials.store(0, Ordering::Relaxed);
        self.state.send_if_modified(|state| {
            let opens = may_open(*state);
            if opens {
                *state = State::Open;
            }
            opens
        });
    }

    /// Returns the number of opens written. If it grew after a failure, the failed write itself was the cause.
    pub(crate) fn opens_written(&self) -> u64 {
        self.opens_written.load(Ordering::Relaxed)
    }

    /// Returns whether the database takes writes other than those for deliveries.
    pub(crate) fn accepts_writes(&self) -> bool {
        self.accepts_writes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_open(&self) -> bool {
        *self.state.borrow() == State::Open
    }

    /// Returns what a slot of `pool` may do now; `None`: nothing.
    pub(crate) fn admission(&self, pool: &PoolName) -> Option<Admission> {
        let state = *self.state.borrow();
        match state {
            State::Open => Some(Admission::All),
            State::Trial => self.trials.permit(pool, &self.state).map(Admission::Trial),
            State::Writable | State::Closed => None,
        }
    }

    /// Waits until a slot of `pool` may do something, and returns it. Cancel-safe.
    pub(crate) async fn wait_for_admission(&self, pool: &PoolName) -> Admission {
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
    pub(crate) async fn wait_for_change(&self, admission: &Admission) {
        let expected = match admission {
            Admission::All => State::Open,
            Admission::Trial(_) => State::Trial,
        };
        self.wait_to_leave(expected).await;
    }

    /// Waits until the database takes writes. Cancel-safe.
    pub(crate) async fn wait_for_writes(&self) {
        self.wait_to_leave(State::Closed).await;
    }

    /// Waits until a delivery's failed write may be tried again. Cancel-safe.
    pub(crate) async fn wait_for_retry(&self) {
        let may_retry = |state: &State| matches!(state, State::Open | State::Trial);
        let _ = self.state.subscribe().wait_for(may_retry).await;
    }

    /// Runs a statement outside the write batcher, with a timeout, and reports its result to the gate.
    ///
    /// Without the timeout, a client would wait for ever for a server that vanished; the abandoned connection
    /// is discarded.
    pub(crate) async fn run_statement<T>(
        &self,
        statement: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let answer = self.run_delivery_statement(statement).await;
        if let Err(error) = &answer
            && error.may_be_of_one_row()
            && !matches!(error, StoreError::Data(_))
        {
            self.record_failure(error);
        }
        answer
    }

    /// Runs a delivery's write like [`run_statement`](Self::run_statement), but does not report a refusal that
    /// the delivery may have caused.
    pub(crate) async fn run_delivery_statement<T>(
        &self,
        statement: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let answer = with_timeout(STATEMENT_TIMEOUT, statement).await;
        match &answer {
            Ok(_) => self.record_success(),
            Err(error) if error.may_be_of_one_row() => {}
            Err(error) => self.record_failure(error),
        }
        answer
    }

    /// Opens the gate, or begins a trial, whenever the database takes writes again. Runs as long as the worker.
    pub(crate) async fn probe(self, store: Store, worker: ProcessId) {
        self.run(|| instances::probe_write(&store, worker)).await;
    }

    async fn run<F: Future<Output = Result<bool, StoreError>>>(&self, probe: impl Fn() -> F) {
        let longest = fault::test_override(MAX_TRIAL_PAUSE, "GATE_PAUSE_MS");
        let mut next_trial = None;
        loop {
            self.wait_for(State::Closed).await;
            // Failures meanwhile do not postpone the trial.
            let failed_trials = self.failed_trials.load(Ordering::Relaxed);
            let trial =
                *next_trial.get_or_insert_with(|| Instant::now() + pause(failed_trials, longest));
            sleep(PROBE_PAUSE).await;
            while !self.probe_succeeds(probe()).await {
                sleep(PROBE_PAUSE).await;
            }
            if self.open_was_refused.load(Ordering::Relaxed) {
                self.state.send_replace(State::Writable);
                tokio::select! {
                    () = self.wait_to_leave(State::Writable) => continue,
                    () = sleep_until(trial) => {}
                }
                self.failed_trials.fetch_add(1, Ordering::Relaxed);
                self.state.send_replace(State::Trial);
                self.end_idle_trial().await;
            } else {
                self.state.send_replace(State::Open);
            }
            next_trial = None;
        }
    }

    async fn wait_for(&self, awaited: State) {
        let _ = self.state.subscribe().wait_for(|state| *state == awaited).await;
    }

    async fn wait_to_leave(&self, left: State) {
        let _ = self.state.subscribe().wait_for(|state| *state != left).await;
    }

    async fn probe_succeeds(&self, probe: impl Future<Output = Result<bool, StoreError>>) -> bool {
        let probed = with_timeout(PROBE_TIMEOUT, probe).await;
        match &probed {
            Ok(true) => self.reachability.record_success(),
            // A restored backup has lost the row; the next heartbeat inserts it.
            Ok(false) => {}
            Err(error) => self.reachability.record_failure(error),
        }
        let succeeded = matches!(probed, Ok(true));
        self.accepts_writes.store(succeeded, Ordering::Relaxed);
        succeeded
    }

    /// Waits for a trial's end, and opens the gate if nothing failed in it.
    async fn end_idle_trial(&self) {
        if timeout(IDLE_TRIAL_TIMEOUT, self.wait_to_leave(State::Trial)).await.is_err() {
            self.open_if(|state| state == State::Trial);
        }
    }
}

/// Returns the pause before the next trial, after `failed_trials` failures.
fn pause(failed_trials: u32, longest: Duration) -> Duration {
    PROBE_PAUSE.saturating_mul(2_u32.saturating_pow(failed_trials)).min(longest)
}

#[cfg(test)]
mod tests;
