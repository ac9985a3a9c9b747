//! Keeps the failure index, so that queries of the failed executions are fast.
//!
//! It adds the recorded changes to the groups' counts, gives new groups their pattern, computes fingerprints
//! that the previous version did not record, and adds the failures from before the index existed. Nothing waits
//! for it: readers add the changes that it has not aggregated yet. Each step is one statement or transaction that can
//! be repeated, so that a crash in between leaves the remainder to the next round, of any scheduler.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sexton_service::fault;
use sexton_store::failures::{self, BackfillProgress};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store};
use tokio::time::Instant;

use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

/// The most changes that one transaction aggregates.
const MAX_BATCH_CHANGES: i64 = 5_000;
/// Executions that one batch of the backfill reads.
const MAX_BACKFILL_ROWS: i64 = 2_000;
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
    state: Mutex<State>,
}

/// The state between rounds; a restart loses it without harm.
#[derive(Debug, Default)]
struct State {
    /// Whether the backfill of earlier failures is complete.
    is_backfilled: bool,
    /// When old entries were last removed.
    pruned_at: Option<Instant>,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FailureAggregatorReport {
    /// Number of changes that were aggregated.
    pub changes: i64,
    /// Fingerprints that were computed.
    pub fingerprints: u64,
    /// The progress of the backfill.
    pub backfill: BackfillProgress,
}

impl FailureAggregator {
    /// Creates the loop, whose first round runs at once.
    pub fn new(store: Store) -> Self {
        Self { store, state: Mutex::default() }
    }

    async fn backfill(&self) -> Result<BackfillProgress, LoopError> {
        if self.state.lock().unwrap_or_else(PoisonError::into_inner).is_backfilled {
            return Ok(BackfillProgress { indexed: 0, done: true });
        }
        let backfill = with_timeout(
            QUERY_TIMEOUT,
            failures::backfill_failures(&self.store, MAX_BACKFILL_ROWS),
        )
        .await?;
        if backfill.indexed > 0 {
            fault::point("scheduler.failures_indexed");
        }
        if backfill.done {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).is_backfilled = true;
        }
        Ok(backfill)
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
        let due = self.state.lock().unwrap_or_else(PoisonError::into_inner).pruned_at;
        if due.is_some_and(|pruned_at| pruned_at.elapsed() < PRUNE_INTERVAL) {
            return Ok(());
        }
        with_timeout(QUERY_TIMEOUT, failures::prune_groups(&self.store, now)).await?;
        self.state.lock().unwrap_or_else(PoisonError::into_inner).pruned_at = Some(Instant::now());
        Ok(())
    }
}

impl BackgroundLoop for FailureAggregator {
    const NAME: &'static str = "registrar";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
    type Report = FailureAggregatorReport;

    async fn run_once(&self, now: Now) -> Result<FailureAggregatorReport, LoopError> {
        let backfill = self.backfill().await?;
        let fingerprints = self.fill_fingerprints().await?;
        let aggregated =
            with_timeout(QUERY_TIMEOUT, failures::aggregate(&self.store, MAX_BATCH_CHANGES, now))
                .await?;
        if aggregated.changes > 0 {
            fault::point("scheduler.failures_aggregated");
        }
        // The scheduler that aggregated them may have died before this step.
        with_timeout(QUERY_TIMEOUT, failures::name_groups(&self.store, MAX_BATCH_FINGERPRINTS))
            .await?;
        self.prune(now).await?;
        Ok(FailureAggregatorReport { changes: aggregated.changes, fingerprints, backfill })
    }

    fn pause(&self, done: &FailureAggregatorReport) -> Pause {
        let more =
            !done.backfill.done || done.changes >= MAX_BATCH_CHANGES || done.fingerprints > 0;
        Pause::AtMost(if more { Duration::ZERO } else { POLL_INTERVAL })
    }
}
