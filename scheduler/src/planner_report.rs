//! What a round of the planner has done, and what it says of it.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// What a round claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlannerReport {
    /// Rows that are to run now.
    pub claimed: usize,
    /// Rows that wait until their job is free.
    pub waiting: usize,
    /// Executions whose place a claim took.
    pub replaced: u64,
    /// Waiters whose job was free: they are to run now.
    pub admitted: usize,
    /// Rows that record a firing that does not run.
    pub skipped: usize,
    /// Firings that were claimed before, by whoever.
    pub known: usize,
    /// Firings without a row.
    pub missed: u64,
    /// Late firings that were set aside, because catch-up is held.
    pub held: u64,
    /// Of `claimed`, those whose tickets are left to the relay.
    pub left_to_relay: usize,
    /// Jobs that were set aside.
    pub quarantined: usize,
    /// The instant of the last look at what is due.
    pub looked_at: Option<DateTime<Utc>>,
    /// How long to sleep, from the end of the round.
    pub sleep: Duration,
}

impl PlannerReport {
    pub(crate) fn add(&mut self, other: &Self) {
        self.claimed += other.claimed;
        self.waiting += other.waiting;
        self.replaced += other.replaced;
        self.skipped += other.skipped;
        self.known += other.known;
        self.missed += other.missed;
        self.held += other.held;
        self.left_to_relay += other.left_to_relay;
    }

    /// Firings, however they were disposed of.
    pub(crate) fn found(&self) -> u64 {
        (self.claimed + self.waiting + self.skipped + self.known) as u64 + self.missed + self.held
    }

    pub(crate) fn log(&self) {
        if self.missed > 0 {
            tracing::info!(
                firings.missed = self.missed,
                "firings that will not run, by their jobs' misfire policies: {}; their gaps say why",
                self.missed
            );
        }
        if self.held > 0 {
            tracing::info!(
                firings.held = self.held,
                "late firings that are set aside, because catch-up is held: {}",
                self.held
            );
        }
        if self.found() > 0 {
            tracing::debug!(
                firings.claimed = self.claimed,
                firings.waiting = self.waiting,
                executions.replaced = self.replaced,
                firings.skipped = self.skipped,
                firings.known = self.known,
                firings.missed = self.missed,
                tickets.left_to_relay = self.left_to_relay,
                "firings claimed: {}",
                self.claimed
            );
        }
    }
}
