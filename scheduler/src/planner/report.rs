//! The report of a planner's round, and its log lines.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::time_jump::TimeJump;
use sexton_service::metrics::table;
use sexton_store::firing::ClockJump;

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlannerReport {
    /// Executions that are to run now.
    pub claimed: usize,
    /// Executions that wait until their job is free.
    pub waiting: usize,
    /// Executions that a claim replaced.
    pub replaced: u64,
    /// Waiters that were admitted because their job was free.
    pub admitted: usize,
    /// Rows that record a firing that does not run.
    pub skipped: usize,
    /// Firings that were already claimed, by any planner.
    pub known: usize,
    /// Firings without a row.
    pub missed: u64,
    /// Late firings that are kept aside while catch-up is held.
    pub held: u64,
    /// Of `claimed`, those whose tickets are left to the relay.
    pub left_to_relay: usize,
    /// Jobs that were quarantined.
    pub quarantined: usize,
    /// The instant at which due jobs were last read.
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

    /// Returns the number of firings, whatever their disposition.
    pub(crate) fn found(&self) -> u64 {
        (self.claimed + self.waiting + self.skipped + self.known) as u64 + self.missed + self.held
    }

    /// Counts and logs the round.
    pub(crate) fn record(&self) {
        for (disposition, count) in [
            ("claimed", self.claimed as u64),
            ("queued", self.waiting as u64),
            ("skipped", self.skipped as u64),
            ("missed", self.missed),
            ("held", self.held),
        ] {
            table::FIRINGS.add([disposition], count);
        }
        self.log();
    }

    fn log(&self) {
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

/// Warns that catch-up is held, with the observed jump and the remedy: once, by the scheduler that noticed it.
pub(crate) fn log_jump(noticed: &ClockJump) {
    let jump_s = noticed.jump.by().num_seconds();
    let remedy =
        "sexton jobs catch-up --dry-run shows what is set aside; then --release or --discard";
    match noticed.jump {
        TimeJump::Forward(_) => tracing::warn!(
            clock.last_seen = %noticed.last_seen,
            clock.now = %noticed.now,
            clock.jump_s = jump_s,
            "catch-up is held: the database's time is {jump_s} s ahead of when a scheduler last saw it \
             (a clock that was set, a backup, or an absence longer than CATCH_UP_HOLD_MS); {remedy}"
        ),
        TimeJump::Backward(_) => tracing::warn!(
            clock.last_seen = %noticed.last_seen,
            clock.now = %noticed.now,
            clock.jump_s = -jump_s,
            "catch-up is held: the database's time is {jump_s} s behind when a scheduler last saw it; \
             {remedy}"
        ),
    }
}
