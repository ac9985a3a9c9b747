//! The sweep: keeps the failed queue in step with the rows.
//!
//! The row is what operators search; the parked message is its portable copy, and people move
//! messages with tools of their own. So every now and then, when the numbers do not fit (`cause`), one replica
//! goes through the queue once, whatever its length: takes some messages, *then* reads their rows, and keeps or
//! removes each by the table in [`sexton_model::sweep`]. Messages without a row and messages that cannot be read
//! are nobody's to remove, so they stay, and are written down ([`sexton_store::unknown_messages`]) for operators to
//! look at; only those that an operator has discarded go. After a complete pass, failed rows whose message was
//! not there owe it again: that is how the graveyard of a wiped broker heals.
//!
//! **Memory.** A batch of messages is held at a time, of bounded size; what was met in the batches before is in the
//! database. **Time.** A pass takes as long as it goes on; without progress it is given up.
//!
//! **Failures.** Each message is settled by itself; a crash or an error in the middle leaves the
//! rest for the next pass, at worst with second copies of a batch, which that pass removes. After an error the
//! next pass waits, longer each time, since it would begin with the same messages.

mod batch;
mod cause;
mod pass;
mod raw;
mod tally;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sexton_broker::{InspectError, Link, Publisher, names};
use sexton_service::fault;
use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_store::parked_messages::{self, FailedCounts};
use sexton_store::unknown_messages::Capacity;
use sexton_store::{Now, Store};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::step::{Pause, Step, StepError};
use batch::BATCH;
use cause::{AT_LEAST_EVERY, Failures, LastPass};
use pass::Pass;
pub use tally::Tally;

const POLL: Duration = Duration::from_secs(30);

/// The loop.
#[derive(Debug)]
pub struct Sweep {
    store: Store,
    link: Link,
    publisher: Publisher,
    relay: Arc<Notify>,
    stop: CancellationToken,
    last: Mutex<LastPass>,
    every: Duration,
    raw_limit: Capacity,
    batch: usize,
    steps: AtomicU64,
    failures: Mutex<Failures>,
}

/// What is known before a pass.
struct Look {
    /// The queue's length over the published failed rows.
    surplus: i64,
    /// Rows in `failed`.
    failed_rows: u64,
    /// Whether that is a cause for a pass.
    cause: bool,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Swept {
    /// The numbers fit.
    NoCause,
    /// Another replica, or other long work of this process, is at it.
    Elsewhere,
    /// The pass before broke off not long ago.
    Rests,
    /// A pass was made.
    Pass(Tally),
}

impl Sweep {
    /// Sweeps the failed queue of `link`'s namespace, putting messages back by `publisher`. `relay`
    /// is woken when messages are owed, `stop` ends a pass early.
    pub fn new(
        store: Store,
        link: Link,
        publisher: Publisher,
        relay: Arc<Notify>,
        stop: CancellationToken,
    ) -> Self {
        let last = Mutex::new(LastPass::new(Instant::now(), 0));
        let every = fault::test_override(AT_LEAST_EVERY, "SWEEP_EVERY_MS");
        let (raw_limit, batch) = (sexton_store::unknown_messages::MAX_STORED, BATCH);
        let (steps, failures) = (AtomicU64::default(), Mutex::default());
        Self { store, link, publisher, relay, stop, last, every, raw_limit, batch, steps, failures }
    }

    /// The same with another limit to what is written down of messages that no row knows.
    #[must_use]
    pub fn with_raw_limit(self, raw_limit: Capacity) -> Self {
        Self { raw_limit, ..self }
    }

    /// The same, which takes so many messages at a time, at least one.
    #[must_use]
    pub fn with_batch(self, messages: usize) -> Self {
        Self { batch: messages.max(1), ..self }
    }

    /// Compares the numbers.
    async fn look(&self) -> Result<Look, StepError> {
        let FailedCounts { failed: failed_rows, published } =
            parked_messages::count_failed(&self.store).await?;
        let queue = names::failed_queue(self.link.namespace());
        let ready = match self.link.depth(&queue).await {
            Ok(depth) => u64::from(depth.ready),
            Err(InspectError::Missing(_)) => {
                self.link.note_missing_queue(&queue);
                // Declared again, it is empty, and the rows say what is missing in it.
                match self.link.redeclare().await {
                    Ok(()) if published > 0 => fault::point("scheduler.sweep_declared"),
                    Ok(()) => {}
                    Err(error) => {
                        tracing::debug!(%error, "the topology could not be declared again");
                    }
                }
                0
            }
            Err(error) => return Err(error.into()),
        };
        let waits = sexton_store::unknown_messages::needs_sweep(&self.store, ready == 0).await?;
        let unfit = self.last().is_cause(ready, published, self.every, Instant::now());
        let cause = waits || unfit;
        Ok(Look { surplus: ready as i64 - published as i64, failed_rows, cause })
    }

    /// Another piece of work was done: a round that goes on is not given up.
    fn goes_on(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    fn last(&self) -> MutexGuard<'_, LastPass> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pass broke off: the next would take and put back the same messages.
    fn rest(&self) {
        self.failures().one_more(Instant::now());
    }

    fn remember(&self, tally: &Tally, surplus_before: i64) {
        // A pass that did not see everything would find the same messages too many at once. What is missing stays cause,
        // after a rest.
        let surplus = if tally.complete {
            *self.failures() = Failures::default();
            tally.unowned as i64
        } else {
            self.rest();
            (surplus_before - tally.removed as i64).max(0)
        };
        *self.last() = LastPass::new(Instant::now(), surplus);
    }
}

impl Step for Sweep {
    const NAME: &'static str = "sweep";
    // Without progress. The longest step is an answer of broker or database.
    const LIMIT: Duration = Duration::from_mins(3);
    type Report = Swept;

    async fn run_once(&self, now: Now) -> Result<Swept, StepError> {
        if !self.link.is_up() {
            return Err(StepError::BrokerAway);
        }
        let Look { surplus, failed_rows, cause } = self.look().await?;
        if !cause {
            return Ok(Swept::NoCause);
        }
        if self.failures().rests(Instant::now()) {
            return Ok(Swept::Rests);
        }
        let lock = ExclusiveLock::try_acquire(&self.store, ExclusiveTask::Sweep, now).await?;
        let Some(mut lock) = lock else { return Ok(Swept::Elsewhere) };
        let queue = names::failed_queue(self.link.namespace());
        let restoring = raw::restore(self, &mut lock, &queue, now).await;
        restoring.inspect_err(|_| self.rest())?;
        let mut pass =
            Pass::begin(self, lock, failed_rows, now).await.inspect_err(|_| self.rest())?;
        let tally = pass.run().await.inspect_err(|_| self.rest())?;
        self.remember(&tally, surplus);
        pass.end().await;
        if tally.owed_again + tally.failed + tally.returned > 0 {
            fault::point("scheduler.sweep_owed");
            self.relay.notify_one();
        }
        tally.tell();
        Ok(Swept::Pass(tally))
    }

    fn progress(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    fn pause(&self, _: &Swept) -> Pause {
        Pause::AtMost(fault::test_override(POLL, "SWEEP_POLL_MS"))
    }
}
