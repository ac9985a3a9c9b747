//! Keeps the failure index, so that queries of the failed executions are fast.
//!
//! It adds the recorded changes to the groups' counts, opens incidents of resolved groups that failed again, gives new groups their pattern, and computes missing
//! fingerprints. Nothing waits for it: readers add the changes that it has not aggregated yet. Each step is one
//! statement or transaction that can be repeated, so that a crash in between leaves the remainder to the next round,
//! of any scheduler.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sexton_service::fault;
use sexton_store::failures;
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store};
use tokio::time::Instant;

use crate::adaptive_batch::AdaptiveBatch;
use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

/// The most changes that one transaction aggregates.
const MAX_BATCH_CHANGES: usize = 5_000;
/// Fingerprints, and patterns, in one round.
const MAX_BATCH_FINGERPRINTS: i64 = 500;
/// Pause after a round that found nothing.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of the removals of old entries.
const PRUNE_INTERVAL: Duration = Duration::from_hours(1);

/// The loop that keeps the failure index.
#[derive(Debug)]
pub struct FailureAggregator {
    store: Store,
    /// Smaller after changes that were not added up in time: each may open an incident.
    batch: AdaptiveBatch,
    /// When old entries were last removed; a restart loses it without harm.
    pruned_at: Mutex<Option<Instant>>,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FailureAggregatorReport {
    /// Number of changes that were aggregated.
    pub changes: i64,
    /// Resolved groups that failed again.
    pub reopened: usize,
    /// Fingerprints that were computed.
    pub fingerprints: u64,
    /// Whether there is more to do at once.
    pub more: bool,
}

impl FailureAggregator {
    /// Creates the loop, whose first round runs at once.
    pub fn new(store: Store) -> Self {
        let batch = AdaptiveBatch::with_max(MAX_BATCH_CHANGES);
        Self { store, batch, pruned_at: Mutex::default() }
    }

    async fn fill_fingerprints(&self) -> Result<u64, LoopError> {
        let unread = with_timeout(
            QUERY_TIMEOUT,
            failures::list_missing_fingerprints(&self.store, MAX_BATCH_FINGERPRINTS),
        )
        .await?;
        if unread.is_empty() {
            return Ok(0);
        }
        Ok(with_timeout(QUERY_TIMEOUT, failures::record_fingerprints(&self.store, &unread)).await?)
    }

    async fn prune(&self, now: Now) -> Result<(), LoopError> {
        let due = *self.pruned_at.lock().unwrap_or_else(PoisonError::into_inner);
        if due.is_some_and(|pruned_at| pruned_at.elapsed() < PRUNE_INTERVAL) {
            return Ok(());
        }
        with_timeout(QUERY_TIMEOUT, failures::prune_groups(&self.store, now)).await?;
        *self.pruned_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(())
    }
}

impl BackgroundLoop for FailureAggregator {
    const NAME: &'static str = "failure_aggregator";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
    type Report = FailureAggregatorReport;

    async fn run_once(&self, now: Now) -> Result<FailureAggregatorReport, LoopError> {
        let fingerprints = self.fill_fingerprints().await?;
        let limit = self.batch.size();
        let aggregating = failures::aggregate(&self.store, limit as i64, now);
        let aggregated = match with_timeout(QUERY_TIMEOUT, aggregating).await {
            Ok(aggregated) => aggregated,
            Err(error) => {
                self.batch.shrink(limit);
                return Err(error.into());
            }
        };
        self.batch.grow(aggregated.changes as usize);
        if aggregated.changes > 0 {
            fault::point("scheduler.failures_aggregated");
        }
        // The scheduler that aggregated them may have died before this step.
        with_timeout(QUERY_TIMEOUT, failures::name_groups(&self.store, MAX_BATCH_FINGERPRINTS))
            .await?;
        self.prune(now).await?;
        Ok(FailureAggregatorReport {
            changes: aggregated.changes,
            reopened: aggregated.reopened,
            fingerprints,
            more: aggregated.changes >= limit as i64 || fingerprints > 0,
        })
    }

    fn pause(&self, done: &FailureAggregatorReport) -> Pause {
        Pause::AtMost(if done.more { Duration::ZERO } else { POLL_INTERVAL })
    }
}
