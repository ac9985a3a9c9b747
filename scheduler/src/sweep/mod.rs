//! The sweep: keeps the failed queue in step with the rows.
//!
//! The row is what operators search; the parked message is its portable copy, and people move messages with
//! other tools. So, when the numbers do not fit (`is_due`), one replica goes through the queue once, whatever
//! its length: it takes some messages, *then* reads their rows, and keeps or removes each by the table in
//! [`sexton_model::sweep`]. Messages without a row and messages that cannot be read are not the sweep's to
//! remove, so they stay, and are recorded ([`sexton_store::unknown_messages`]) for operators; it removes only
//! those that an operator has discarded. After a complete pass, failed rows without a message have an
//! unpublished ticket again: that is how the failed queue of a wiped broker is rebuilt.
//!
//! **Memory.** A pass holds one batch of messages at a time, of bounded size; its earlier batches are recorded
//! in the database. **Time.** A pass has no time limit while it makes progress; without progress it is dropped.
//!
//! **Failures.** Each message is settled separately; a crash or an error in the middle leaves the others to the
//! next pass, at worst with second copies of a batch, which that pass removes. After an error the next pass
//! waits, longer each time, since it would begin with the same messages.

mod batch;
mod pass;
mod pass_schedule;
mod tally;
mod unknown_messages;

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

use crate::background_loop::{BackgroundLoop, LoopError, Pause};
use batch::MAX_BATCH_MESSAGES;
use pass::Pass;
use pass_schedule::{Backoff, LastPass, MAX_PASS_INTERVAL};
pub use tally::Tally;

const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// The loop that sweeps the failed queue.
#[derive(Debug)]
pub struct Sweep {
    store: Store,
    link: Link,
    publisher: Publisher,
    relay: Arc<Notify>,
    stop: CancellationToken,
    last_pass: Mutex<LastPass>,
    max_interval: Duration,
    unknown_limit: Capacity,
    batch: usize,
    progress_count: AtomicU64,
    backoff: Mutex<Backoff>,
}

/// The numbers before a pass.
struct PassCheck {
    /// The queue's length minus the number of published failed rows.
    surplus: i64,
    /// Rows in `failed`.
    failed_rows: u64,
    /// Whether a pass is due.
    is_due: bool,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SweepReport {
    /// The numbers fit.
    NotDue,
    /// Another replica, or other long work of this process, holds the lock.
    LockedElsewhere,
    /// The previous pass failed recently.
    BackingOff,
    /// A pass was made.
    Pass(Tally),
}

impl Sweep {
    /// Creates the sweep of the failed queue of `link`'s namespace; `publisher` puts messages back, `relay` is
    /// woken when a ticket is unpublished, `stop` ends a pass early.
    pub fn new(
        store: Store,
        link: Link,
        publisher: Publisher,
        relay: Arc<Notify>,
        stop: CancellationToken,
    ) -> Self {
        let last_pass = Mutex::new(LastPass::new(Instant::now(), 0));
        let max_interval = fault::test_override(MAX_PASS_INTERVAL, "SWEEP_EVERY_MS");
        let (unknown_limit, batch) =
            (sexton_store::unknown_messages::MAX_STORED, MAX_BATCH_MESSAGES);
        let (progress_count, backoff) = (AtomicU64::default(), Mutex::default());
        Self {
            store,
            link,
            publisher,
            relay,
            stop,
            last_pass,
            max_interval,
            unknown_limit,
            batch,
            progress_count,
            backoff,
        }
    }

    /// Sets another limit for the records of messages that no row knows.
    #[must_use]
    pub fn with_unknown_limit(self, unknown_limit: Capacity) -> Self {
        Self { unknown_limit, ..self }
    }

    /// Sets how many messages a batch takes, at least one.
    #[must_use]
    pub fn with_batch(self, messages: usize) -> Self {
        Self { batch: messages.max(1), ..self }
    }

    /// Compares the numbers.
    async fn check(&self) -> Result<PassCheck, LoopError> {
        let FailedCounts { failed: failed_rows, published } =
            parked_messages::count_failed(&self.store).await?;
        let queue = names::failed_queue(self.link.namespace());
        let ready = match self.link.depth(&queue).await {
            Ok(depth) => u64::from(depth.ready),
            Err(InspectError::Missing(_)) => {
                self.link.note_missing_queue(&queue);
                // The redeclared queue is empty, and the rows show which messages are missing.
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
        let has_waiting_action =
            sexton_store::unknown_messages::needs_sweep(&self.store, ready == 0).await?;
        let numbers_differ =
            self.last_pass().is_pass_due(ready, published, self.max_interval, Instant::now());
        let is_due = has_waiting_action || numbers_differ;
        Ok(PassCheck { surplus: ready as i64 - published as i64, failed_rows, is_due })
    }

    /// Records a finished piece of work, so that a long round is not dropped.
    fn note_progress(&self) {
        self.progress_count.fetch_add(1, Ordering::Relaxed);
    }

    fn last_pass(&self) -> MutexGuard<'_, LastPass> {
        self.last_pass.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn backoff(&self) -> MutexGuard<'_, Backoff> {
        self.backoff.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delays the next pass, which would take and put back the same messages.
    fn back_off(&self) {
        self.backoff().record_failure(Instant::now());
    }

    fn record_pass(&self, tally: &Tally, surplus_before: i64) {
        // A pass that did not see everything would find the same surplus again at once. Missing messages still
        // make a pass due, after a pause.
        let surplus = if tally.complete {
            *self.backoff() = Backoff::default();
            tally.unknown as i64
        } else {
            self.back_off();
            (surplus_before - tally.removed as i64).max(0)
        };
        *self.last_pass() = LastPass::new(Instant::now(), surplus);
    }
}

impl BackgroundLoop for Sweep {
    const NAME: &'static str = "sweep";
    // A round may take this long without progress. The longest step is one answer of the broker or the database.
    const ROUND_TIMEOUT: Duration = Duration::from_mins(3);
    type Report = SweepReport;

    async fn run_once(&self, now: Now) -> Result<SweepReport, LoopError> {
        if !self.link.is_up() {
            return Err(LoopError::BrokerUnavailable);
        }
        let PassCheck { surplus, failed_rows, is_due } = self.check().await?;
        if !is_due {
            return Ok(SweepReport::NotDue);
        }
        if self.backoff().is_active(Instant::now()) {
            return Ok(SweepReport::BackingOff);
        }
        let lock = ExclusiveLock::try_acquire(&self.store, ExclusiveTask::Sweep, now).await?;
        let Some(mut lock) = lock else { return Ok(SweepReport::LockedElsewhere) };
        let queue = names::failed_queue(self.link.namespace());
        let restoring = unknown_messages::restore(self, &mut lock, &queue, now).await;
        restoring.inspect_err(|_| self.back_off())?;
        let mut pass =
            Pass::begin(self, lock, failed_rows, now).await.inspect_err(|_| self.back_off())?;
        let tally = pass.run().await.inspect_err(|_| self.back_off())?;
        self.record_pass(&tally, surplus);
        pass.end().await;
        if tally.marked_unpublished + tally.failed + tally.returned > 0 {
            fault::point("scheduler.sweep_marked_unpublished");
            self.relay.notify_one();
        }
        tally.log();
        Ok(SweepReport::Pass(tally))
    }

    fn progress(&self) -> u64 {
        self.progress_count.load(Ordering::Relaxed)
    }

    fn pause(&self, _: &SweepReport) -> Pause {
        Pause::AtMost(fault::test_override(POLL_INTERVAL, "SWEEP_POLL_MS"))
    }
}
