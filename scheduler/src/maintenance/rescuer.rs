//! Ends attempts whose leases are not renewed any more, because their worker has died or is cut off.
//!
//! It reads all open attempts every second and ends one when it has seen the same renewal of it for a whole
//! lease by this host's monotonic clock. The database's clock is not used: a step of it, or a failover to a
//! server with another clock, ends nothing. A rescuer that has just started therefore waits for one lease.
//!
//! The decision is the same as after any failed attempt, with a separate budget; the statement repeats the
//! condition that this is still the last renewal, so a renewal in between wins. The tickets that follow are
//! unpublished, and the relay is woken at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sexton_engine::lost_attempts::{self, MAX_BATCH_ATTEMPTS};
use sexton_engine::parked_log::log_parked;
use sexton_model::id::ExecutionId;
use sexton_model::lease::{LeaseObserver, is_expired};
use sexton_model::log_throttle::LogThrottle;
use sexton_model::retry::RetryPolicy;
use sexton_service::fault;
use sexton_store::lost_attempts::LossGrounds;
use sexton_store::running_attempts::{self, LeaseRenewal, RunningAttempt};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store};
use tokio::sync::Notify;

use super::stopwatch::Stopwatch;
use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

/// Attempts that one statement reads.
const MAX_PAGE_ATTEMPTS: usize = 5_000;
/// The most attempts that are watched at a time, those of the oldest executions first; some 20 MB of memory.
/// Further ones are watched when others have ended.
const MAX_WATCHED_ATTEMPTS: usize = 100_000;
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The loop that ends lost attempts.
#[derive(Debug)]
pub struct Rescuer {
    store: Store,
    defaults: RetryPolicy,
    relay: Arc<Notify>,
    stopwatch: Stopwatch,
    observed: Mutex<LeaseObserver<ExecutionId, LeaseRenewal>>,
    page: usize,
    max_watched: usize,
    log_throttle: LogThrottle,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RescuerReport {
    /// Attempts that are watched.
    pub watched: usize,
    /// Number of watched attempts without a renewal for a whole lease.
    pub found: usize,
    /// Number of those that this round ended; the others had changed meanwhile.
    pub lost: usize,
}

impl Rescuer {
    /// Creates the rescuer; `defaults` apply where a job has no value; `relay` is woken when a ticket is
    /// unpublished.
    pub fn new(store: Store, defaults: RetryPolicy, relay: Arc<Notify>) -> Self {
        Self {
            store,
            defaults,
            relay,
            stopwatch: Stopwatch::default(),
            observed: Mutex::default(),
            page: MAX_PAGE_ATTEMPTS,
            max_watched: MAX_WATCHED_ATTEMPTS,
            log_throttle: LogThrottle::default(),
        }
    }

    /// Replaces the host's clock.
    #[must_use]
    pub fn with_stopwatch(self, stopwatch: Stopwatch) -> Self {
        Self { stopwatch, ..self }
    }

    /// Sets how many attempts one statement reads, and how many are watched.
    #[must_use]
    pub fn with_limits(self, page: usize, max_watched: usize) -> Self {
        Self { page: page.max(1), max_watched: max_watched.max(1), ..self }
    }

    /// Reads the open attempts; returns how many are watched, and those that were seen with the same renewal
    /// for a whole lease.
    async fn observe_attempts(&self, now: Now) -> Result<(usize, Vec<RunningAttempt>), LoopError> {
        let (mut watched, mut unrenewed, mut after) = (0, Vec::new(), None);
        loop {
            let limit = self.page.min(self.max_watched - watched);
            let reading = running_attempts::list_page(&self.store, after, limit as i64, now);
            let page = with_timeout(QUERY_TIMEOUT, reading).await?;
            // The clock is read after the answer, which describes an earlier instant, and before any statement that
            // depends on it.
            let read_by = self.stopwatch.read();
            watched += page.len();
            let full = watched >= self.max_watched;
            let whole = full || page.len() < limit;
            let keys: Vec<_> = page
                .iter()
                .map(|attempt| (attempt.execution_id, attempt.renewed.clone()))
                .collect();
            let since = {
                let mut observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
                observed.observe_page(after, &keys, whole, read_by)
            };
            after = keys.last().map(|(id, _)| *id).or(after);
            let over = page.into_iter().zip(since).filter(|(attempt, since)| {
                !attempt.alive && is_expired(*since, read_by, attempt.lease)
            });
            unrenewed.extend(over.map(|(attempt, _)| attempt));
            if full && self.log_throttle.permits(Instant::now()) {
                tracing::warn!(
                    "there are {} open attempts or more: those of later executions are not watched until others \
                     have ended; if their worker dies, they are tried again only then",
                    self.max_watched
                );
            }
            if whole {
                return Ok((watched, unrenewed));
            }
        }
    }

    /// Ends the attempts, each unless it was renewed meanwhile; returns how many it ended.
    async fn end_unrenewed(
        &self,
        unrenewed: &[RunningAttempt],
        now: Now,
    ) -> Result<usize, LoopError> {
        let grounds = LossGrounds::Unrenewed(unrenewed);
        let finding = lost_attempts::find(&self.store, &grounds, &self.defaults);
        let lost = with_timeout(QUERY_TIMEOUT, finding).await?;
        let settling = lost_attempts::settle(&self.store, &grounds, lost, now);
        let ended = with_timeout(QUERY_TIMEOUT, settling).await?;
        for (attempt, _) in &ended {
            tracing::warn!(
                execution.id = %attempt.execution_id,
                attempt.number = attempt.attempt.get(),
                worker.id = %attempt.worker,
                "attempt {} of execution {} is lost: its worker let the lease run out",
                attempt.attempt,
                attempt.execution_id
            );
        }
        if !ended.is_empty() {
            fault::point("scheduler.rescued");
            self.relay.notify_one();
        }
        let ids: Vec<_> = ended.iter().map(|(attempt, _)| attempt.execution_id).collect();
        log_parked(&self.store, &ids, QUERY_TIMEOUT).await;
        Ok(ended.len())
    }
}

impl BackgroundLoop for Rescuer {
    const NAME: &'static str = "rescuer";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
    type Report = RescuerReport;

    async fn run_once(&self, now: Now) -> Result<RescuerReport, LoopError> {
        let (watched, unrenewed) = self.observe_attempts(now).await?;
        let mut lost = 0;
        for batch in unrenewed.chunks(MAX_BATCH_ATTEMPTS) {
            lost += self.end_unrenewed(batch, now).await?;
        }
        Ok(RescuerReport { watched, found: unrenewed.len(), lost })
    }

    fn pause(&self, _: &RescuerReport) -> Pause {
        Pause::AtMost(POLL_INTERVAL)
    }
}
