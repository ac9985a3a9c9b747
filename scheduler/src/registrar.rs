//! The registrar: keeps the register of the graveyard, so that what operators ask it is answered fast.
//!
//! It adds up the changes of the groups, gives new groups their pattern, reads fingerprints that programs
//! of the version before did not record, and brings in what failed before there was a register. Nothing
//! waits for it: whoever reads takes what is not added up yet besides. Each of its steps is one statement
//! or transaction that can be done again, so that a crash in between leaves the rest to the next round, of
//! any scheduler.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sexton_service::fault;
use sexton_store::failures::{self, BackfillProgress};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store};
use tokio::time::Instant;

use crate::step::{ANSWER, Pause, Step, StepError};

/// Changes that are added up in one transaction.
const CHANGES: i64 = 5_000;
/// Executions that are looked through in one portion of what failed before.
const PORTION: i64 = 2_000;
/// Fingerprints, and patterns, of one round.
const READ: i64 = 500;
/// A round that found nothing is followed by the next after this long.
const POLL: Duration = Duration::from_secs(5);
/// From one removal of what is old to the next.
const TIDY_EVERY: Duration = Duration::from_hours(1);

/// The loop.
#[derive(Debug)]
pub struct Registrar {
    store: Store,
    state: Mutex<State>,
}

/// What it remembers, and could forget.
#[derive(Debug, Default)]
struct State {
    /// Nothing that failed before is missing any more.
    filled: bool,
    /// When what is old was removed last.
    tidied: Option<Instant>,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Registered {
    /// Changes that were added up.
    pub changes: i64,
    /// Fingerprints that were read.
    pub read: u64,
    /// What was brought in.
    pub filled: BackfillProgress,
}

impl Registrar {
    /// Looks at once.
    pub fn new(store: Store) -> Self {
        Self { store, state: Mutex::default() }
    }

    async fn bring_in(&self) -> Result<BackfillProgress, StepError> {
        if self.state.lock().unwrap_or_else(PoisonError::into_inner).filled {
            return Ok(BackfillProgress { buried: 0, done: true });
        }
        let filled =
            with_timeout(ANSWER, failures::backfill_failures(&self.store, PORTION)).await?;
        if filled.buried > 0 {
            fault::point("scheduler.buried");
        }
        if filled.done {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).filled = true;
        }
        Ok(filled)
    }

    async fn read(&self) -> Result<u64, StepError> {
        let unread =
            with_timeout(ANSWER, failures::list_missing_fingerprints(&self.store, READ)).await?;
        if unread.is_empty() {
            return Ok(0);
        }
        Ok(with_timeout(ANSWER, failures::record_fingerprints(&self.store, &unread)).await?)
    }

    async fn tidy(&self, now: Now) -> Result<(), StepError> {
        let due = self.state.lock().unwrap_or_else(PoisonError::into_inner).tidied;
        if due.is_some_and(|tidied| tidied.elapsed() < TIDY_EVERY) {
            return Ok(());
        }
        with_timeout(ANSWER, failures::prune_groups(&self.store, now)).await?;
        self.state.lock().unwrap_or_else(PoisonError::into_inner).tidied = Some(Instant::now());
        Ok(())
    }
}

impl Step for Registrar {
    const NAME: &'static str = "registrar";
    const LIMIT: Duration = Duration::from_mins(2);
    type Report = Registered;

    async fn run_once(&self, now: Now) -> Result<Registered, StepError> {
        let filled = self.bring_in().await?;
        let read = self.read().await?;
        let folded = with_timeout(ANSWER, failures::aggregate(&self.store, CHANGES, now)).await?;
        if folded.changes > 0 {
            fault::point("scheduler.folded");
        }
        // Whoever folded them may have died before this.
        with_timeout(ANSWER, failures::name_groups(&self.store, READ)).await?;
        self.tidy(now).await?;
        Ok(Registered { changes: folded.changes, read, filled })
    }

    fn pause(&self, done: &Registered) -> Pause {
        let more = !done.filled.done || done.changes >= CHANGES || done.read > 0;
        Pause::AtMost(if more { Duration::ZERO } else { POLL })
    }
}
