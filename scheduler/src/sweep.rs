//! The sweep: keeps the failed queue in step with the rows.
//!
//! The row is what operators search; the parked message is its portable copy, and people move
//! messages with tools of their own. So every now and then, when the numbers do not fit, one replica
//! goes through the queue once: takes a message, *then* reads its row, and keeps or removes it by
//! the table in [`sexton_model::sweep`]. Messages without a row and messages that cannot be read are
//! nobody's to remove, so they stay, and are written down ([`sexton_store::raw`]) for operators to
//! look at; only those that an operator has discarded go. After a complete pass, failed rows whose message was not there
//! owe it again: that is how the graveyard of a wiped broker heals.
//!
//! **Failures.** Each message is settled by itself; a crash or an error in the middle leaves the
//! rest for the next pass, at worst with a second copy, which that pass removes. After an error the
//! next pass waits, longer each time, since it would begin with the same messages.

mod cause;
mod pass;
mod raw;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sexton_broker::{InspectError, Link, Publisher, names};
use sexton_service::fault;
use sexton_store::exclusive::{Exclusive, ExclusiveTask};
use sexton_store::raw::Room;
use sexton_store::{Now, Store, parked};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::step::{Pause, Step, StepError};
use cause::{AT_LEAST_EVERY, Failures, LastPass, is_cause, is_cause_once_more};
use pass::Pass;
pub use pass::Tally;

const POLL: Duration = Duration::from_secs(30);

/// The loop.
#[derive(Debug)]
pub struct Sweep {
    store: Store,
    link: Link,
    publisher: Publisher,
    relay: Arc<Notify>,
    held: Arc<tokio::sync::Mutex<()>>,
    stop: CancellationToken,
    last: Mutex<LastPass>,
    every: Duration,
    raw_limit: Room,
    failures: Mutex<Failures>,
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
    /// is woken when messages are owed. `held` is shared by the loops of this process that keep a
    /// connection for long, `stop` ends a pass early.
    pub fn new(
        store: Store,
        link: Link,
        publisher: Publisher,
        relay: Arc<Notify>,
        held: Arc<tokio::sync::Mutex<()>>,
        stop: CancellationToken,
    ) -> Self {
        let last = Mutex::new(LastPass { at: Instant::now(), surplus: 0, complete: true });
        let every = fault::time(AT_LEAST_EVERY, "SWEEP_EVERY_MS");
        let (raw_limit, failures) = (sexton_store::raw::LIMIT, Mutex::default());
        Self { store, link, publisher, relay, held, stop, last, every, raw_limit, failures }
    }

    /// The same with another limit to what is written down of messages that no row knows.
    #[must_use]
    pub fn with_raw_limit(self, raw_limit: Room) -> Self {
        Self { raw_limit, ..self }
    }

    /// The queue's length over the published failed rows, and whether that is a cause.
    async fn look(&self) -> Result<(i64, bool), StepError> {
        let published = parked::counts(&self.store).await?.published;
        let queue = names::failed_queue(self.link.namespace());
        let ready = match self.link.depth(&queue).await {
            Ok(depth) => u64::from(depth.ready),
            Err(InspectError::Missing(_)) => {
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
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let work = sexton_store::raw::work(&self.store, ready == 0).await?;
        let now = Instant::now();
        let cause = is_cause(ready, published, last, self.every, now)
            || work.waits
            || (work.taken && is_cause_once_more(last, self.every, now));
        Ok((ready as i64 - published as i64, cause))
    }

    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pass broke off: the next would take and put back the same messages.
    fn rest(&self) {
        self.failures().one_more(Instant::now());
    }

    fn remember(&self, tally: &Tally, surplus_before: i64) {
        // A pass that did not see everything would find the same cause again at once.
        let surplus = if tally.complete {
            tally.unowned as i64
        } else {
            surplus_before - tally.removed as i64
        };
        *self.failures() = Failures::default();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
            LastPass { at: Instant::now(), surplus, complete: tally.complete };
    }
}

impl Step for Sweep {
    const NAME: &'static str = "sweep";
    const LIMIT: Duration = Duration::from_mins(12);
    type Report = Swept;

    async fn run_once(&self, now: Now) -> Result<Swept, StepError> {
        if !self.link.is_up() {
            return Err(StepError::BrokerAway);
        }
        let (surplus, cause) = self.look().await?;
        if !cause {
            return Ok(Swept::NoCause);
        }
        if self.failures().rests(Instant::now()) {
            return Ok(Swept::Rests);
        }
        let Ok(_held) = self.held.try_lock() else { return Ok(Swept::Elsewhere) };
        let lock = Exclusive::try_acquire(&self.store, ExclusiveTask::Sweep, now).await?;
        let Some(lock) = lock else { return Ok(Swept::Elsewhere) };
        let queue = names::failed_queue(self.link.namespace());
        let mut lock = lock;
        let restoring = raw::restore(self, &mut lock, &queue, now).await;
        restoring.inspect_err(|_| self.rest())?;
        let mut pass = Pass::begin(self, lock, now).await.inspect_err(|_| self.rest())?;
        let tally = pass.run().await.inspect_err(|_| self.rest())?;
        self.remember(&tally, surplus);
        pass.end().await;
        if tally.owed_again + tally.failed > 0 {
            fault::point("scheduler.sweep_owed");
            self.relay.notify_one();
        }
        tally.tell();
        Ok(Swept::Pass(tally))
    }

    fn pause(&self, _: &Swept) -> Pause {
        Pause::AtMost(POLL)
    }
}
