//! The pruner: applies the retention, daily at 3:00 UTC, on one replica.
//!
//! It removes small batches with pauses in between, so that it never delays other work, and takes the targets
//! in turn, so that many rows of one target do not postpone the others. When a pass is complete for all
//! targets, the database records that for that 3:00: so a pass that was interrupted, or a 3:00 at which no
//! scheduler ran, is made up for within a minute of the start; and only one of several replicas makes it. A
//! pass that `MAX_PASS_DURATION` cuts short is followed by another.
//!
//! A target that cannot be continued (a missing privilege, a statement that takes too long even for a few rows)
//! is left out of the pass, logged, and tried again later; the other targets are completed.

mod turn;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use sexton_engine::start_up::is_outage;
use sexton_service::fault;
use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_store::retention::{self, PrunedBatch, RetentionPolicy, RetentionTarget};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store, StoreError, firing};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::background_loop::{BackgroundLoop, LoopError, Pause};

use turn::Turn;

/// Rows in one transaction.
const MAX_BATCH_ROWS: i64 = 1_000;
/// Pause after a transaction that removed rows. Otherwise the pause is as long as the transaction took.
const BATCH_PAUSE: Duration = Duration::from_millis(100);
/// The longest pass, enough for a million rows or more.
const MAX_PASS_DURATION: Duration = Duration::from_mins(30);
/// Interval of the queries of the database's clock, and the first delay after a failure, doubled with each
/// further one.
const POLL_INTERVAL: Duration = Duration::from_mins(1);
/// Timeout of one query; the server ends a statement earlier.
const QUERY_TIMEOUT: Duration = Duration::from_secs(35);
/// Timeout of a batch, which has several statements: each of them has its own limit, and one that takes too
/// long makes the batch smaller.
const BATCH_TIMEOUT: Duration = Duration::from_mins(5);
/// Time after midnight UTC.
const RUN_AT: TimeDelta = TimeDelta::hours(3);

/// The loop that applies the retention.
#[derive(Debug)]
pub struct Pruner {
    store: Store,
    terms: RetentionPolicy,
    stop: CancellationToken,
    progress: Mutex<Progress>,
}

/// What this process knows about the latest 3:00.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// The latest 3:00 whose pass is complete.
    done: Option<DateTime<Utc>>,
    /// The targets that are complete for this 3:00.
    finished_targets: (Option<DateTime<Utc>>, Vec<RetentionTarget>),
    /// The earliest retry after a failure.
    retry: Option<DateTime<Utc>>,
    failures: u32,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrunerReport {
    /// Nothing is due before this instant.
    NotDue(DateTime<Utc>),
    /// Another replica holds the lock; this one checks again later.
    LockedElsewhere,
    /// A pass was made.
    Pass(PruneCounts),
}

/// What a pass removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PruneCounts {
    /// Executions that were deleted.
    pub deleted: u64,
    /// Executions with a caller's own key of which only the key was kept.
    pub stripped: u64,
    /// All other rows that were deleted.
    pub other: u64,
    /// Whether the pass is complete.
    pub complete: bool,
}

impl Pruner {
    /// Creates the pruner with the retention times of `terms`. `stop` ends a pass early.
    pub fn new(store: Store, terms: RetentionPolicy, stop: CancellationToken) -> Self {
        Self { store, terms, stop, progress: Mutex::default() }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns until when nothing is due, as far as this process knows without a query.
    fn not_due_until(&self, now: DateTime<Utc>, latest: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let progress = self.progress();
        if progress.done == Some(latest) {
            return Some(next_run(now));
        }
        progress.retry.filter(|retry| *retry > now)
    }

    async fn prune(
        &self,
        latest: DateTime<Utc>,
        now: Now,
    ) -> Result<Option<PrunerReport>, LoopError> {
        if !with_timeout(QUERY_TIMEOUT, retention::is_due(&self.store, self.terms, latest)).await? {
            return Ok(None);
        }
        // A dedicated connection, because the lock is held as long as the pass.
        let lock = ExclusiveLock::try_acquire_dedicated(&self.store, ExclusiveTask::Retention, now);
        let Some(mut lock) = with_timeout(QUERY_TIMEOUT, lock).await? else {
            return Ok(Some(PrunerReport::LockedElsewhere));
        };
        let mut pruned = PruneCounts::default();
        let passed = self.pass(&mut lock, latest, &mut pruned, now).await;
        pruned.log(self.terms.days);
        if matches!(passed, Ok(true)) {
            with_timeout(QUERY_TIMEOUT, retention::record_pass(&self.store, self.terms, latest))
                .await?;
        }
        pruned.complete = passed?;
        // If that fails, the lock is lost anyway, and the pass is complete.
        if let Err(error) = with_timeout(QUERY_TIMEOUT, lock.release()).await {
            tracing::debug!(%error, "the lock of retention was lost");
        }
        Ok(Some(PrunerReport::Pass(pruned)))
    }

    /// Removes a batch of each target in turn until all are complete; returns whether they are.
    async fn pass(
        &self,
        lock: &mut ExclusiveLock,
        latest: DateTime<Utc>,
        pruned: &mut PruneCounts,
        now: Now,
    ) -> Result<bool, LoopError> {
        let until = Instant::now() + MAX_PASS_DURATION;
        let finished_targets = self.finished_targets(latest);
        let remaining =
            RetentionTarget::ALL.into_iter().filter(|thing| !finished_targets.contains(thing));
        let mut turns: Vec<Turn> =
            remaining.map(|thing| Turn::new(thing, MAX_BATCH_ROWS)).collect();
        let mut failure = None;
        while !turns.is_empty() {
            for turn in &mut turns {
                let began = Instant::now();
                match self.prune_batch(turn, now).await {
                    Ok(batch) => pruned.add(turn.thing, batch),
                    Err(error) if is_fatal_to_pass(&error) => return Err(error.into()),
                    Err(error) if turn.record_failure(&error) => drop(failure.get_or_insert(error)),
                    Err(_) => {}
                }
                if turn.is_finished() {
                    self.progress().finished_targets.1.push(turn.thing);
                }
                let pause =
                    if turn.has_removed() { BATCH_PAUSE } else { began.elapsed().min(BATCH_PAUSE) };
                if !self.pause_between_batches(lock, until, pause).await? {
                    return Ok(false);
                }
            }
            turns.retain(Turn::has_further_turn);
        }
        failure.map_or(Ok(true), |error| Err(error.into()))
    }

    async fn prune_batch(&self, turn: &mut Turn, now: Now) -> Result<PrunedBatch, StoreError> {
        let (thing, batch_rows) = (turn.thing, turn.batch_rows);
        let position = &mut turn.position;
        let query =
            retention::prune_batch(&self.store, thing, position, self.terms, batch_rows, now);
        let batch = with_timeout(BATCH_TIMEOUT, query).await?;
        turn.record_batch(batch);
        match thing {
            RetentionTarget::Executions | RetentionTarget::OwnKeys | RetentionTarget::Contents
                if turn.has_removed() =>
            {
                fault::point("scheduler.pruned");
            }
            RetentionTarget::Gaps if turn.has_removed() => fault::point("scheduler.pruned_gaps"),
            _ => {}
        }
        Ok(batch)
    }

    /// Returns the targets that are complete in the pass of `latest`.
    fn finished_targets(&self, latest: DateTime<Utc>) -> Vec<RetentionTarget> {
        let mut progress = self.progress();
        if progress.finished_targets.0 != Some(latest) {
            progress.finished_targets = (Some(latest), Vec::new());
        }
        progress.finished_targets.1.clone()
    }

    /// Pauses between two transactions; returns whether the pass continues.
    async fn pause_between_batches(
        &self,
        lock: &mut ExclusiveLock,
        until: Instant,
        pause: Duration,
    ) -> Result<bool, LoopError> {
        with_timeout(QUERY_TIMEOUT, lock.confirm()).await?;
        tokio::select! {
            () = sleep(pause) => {}
            () = self.stop.cancelled() => {}
        }
        Ok(!self.stop.is_cancelled() && Instant::now() < until)
    }
}

impl BackgroundLoop for Pruner {
    const NAME: &'static str = "pruner";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(35);
    type Report = PrunerReport;

    async fn run_once(&self, now: Now) -> Result<PrunerReport, LoopError> {
        let clock =
            with_timeout(QUERY_TIMEOUT, firing::next_claim(&self.store, &[], now)).await?.now;
        let latest = next_run(clock) - Days::new(1);
        if let Some(until) = self.not_due_until(clock, latest) {
            return Ok(PrunerReport::NotDue(until));
        }
        let outcome = self.prune(latest, now).await;
        let mut progress = self.progress();
        match outcome {
            Ok(None) => {
                *progress = Progress { done: Some(latest), ..Progress::default() };
                Ok(PrunerReport::NotDue(next_run(clock)))
            }
            Ok(Some(done)) => {
                if matches!(done, PrunerReport::Pass(pruned) if pruned.complete) {
                    *progress = Progress { done: Some(latest), ..Progress::default() };
                }
                Ok(done)
            }
            Err(error) => {
                // Up to about an hour.
                progress.retry = Some(clock + POLL_INTERVAL * 2_u32.pow(progress.failures.min(6)));
                progress.failures = progress.failures.saturating_add(1);
                Err(error)
            }
        }
    }

    fn pause(&self, _: &PrunerReport) -> Pause {
        Pause::AtMost(POLL_INTERVAL)
    }
}

impl PruneCounts {
    fn add(&mut self, thing: RetentionTarget, batch: PrunedBatch) {
        self.stripped += batch.stripped;
        match thing {
            RetentionTarget::Executions | RetentionTarget::OwnKeys => {
                self.deleted += batch.removed;
            }
            _ => self.other += batch.removed,
        }
    }

    fn log(&self, days: i32) {
        tracing::info!(
            executions.deleted = self.deleted,
            executions.stripped = self.stripped,
            rows.deleted = self.other,
            "retention removed {} executions that had finished more than {days} days ago, and {} other rows",
            self.deleted,
            self.other
        );
    }
}

/// Returns whether the error would also stop every other target.
fn is_fatal_to_pass(error: &StoreError) -> bool {
    is_outage(error) && !matches!(error, StoreError::TooSlow(_))
}

/// Returns the first 3:00 UTC strictly after `now`.
pub fn next_run(now: DateTime<Utc>) -> DateTime<Utc> {
    let today = now.date_naive().and_time(NaiveTime::MIN).and_utc() + RUN_AT;
    if today > now { today } else { today + Days::new(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retention_runs_at_three_in_the_morning_utc() {
        let table = [
            ("2026-01-01T02:59:59.9Z", "2026-01-01T03:00:00Z"),
            ("2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z"),
            ("2026-12-31T23:00:00Z", "2027-01-01T03:00:00Z"),
        ];
        for (now, expected) in table {
            let expected: DateTime<Utc> = expected.parse().unwrap();
            assert_eq!(next_run(now.parse().unwrap()), expected, "{now}");
        }
    }
}
