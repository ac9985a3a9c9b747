//! Removes old pings of checks, and deleted checks: each check is looked at hourly.
//!
//! Every scheduler does, and each takes other checks. It is a loop apart from the judgement of checks, which pings by the thousand must
//! not delay.

use std::time::Duration;

use sexton_store::checks::trim::{Trimmed, trim};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store};

use crate::adaptive_batch::AdaptiveBatch;
use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

/// Checks of one transaction.
const MAX_BATCH_CHECKS: i64 = 500;
/// Pings that one transaction removes.
const MAX_BATCH_PINGS: usize = 5_000;
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// The loop that removes old pings.
#[derive(Debug)]
pub struct PingTrimmer {
    store: Store,
    /// Of pings; smaller after a round that was not written in time.
    batch: AdaptiveBatch,
}

impl PingTrimmer {
    /// Creates the loop, whose first round runs at once.
    pub const fn new(store: Store) -> Self {
        Self { store, batch: AdaptiveBatch::with_max(MAX_BATCH_PINGS) }
    }
}

impl BackgroundLoop for PingTrimmer {
    const NAME: &'static str = "ping_trimmer";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(1);
    type Report = Trimmed;

    async fn run_once(&self, now: Now) -> Result<Trimmed, LoopError> {
        let limit = self.batch.size();
        let trimming = trim(&self.store, MAX_BATCH_CHECKS, limit as i64, now);
        let trimmed = with_timeout(QUERY_TIMEOUT, trimming).await;
        match &trimmed {
            Ok(trimmed) => self.batch.grow(trimmed.pings as usize),
            Err(_) => self.batch.shrink(limit),
        }
        Ok(trimmed?)
    }

    fn pause(&self, report: &Trimmed) -> Pause {
        Pause::AtMost(if report.more { Duration::ZERO } else { POLL_INTERVAL })
    }
}
