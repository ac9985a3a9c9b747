//! Runs one job of this instance: waits for its ticks, tries each, and counts what became of it.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::Lock;
use super::clock::DatabaseClock;
use super::counts::{Count, Counts};
use super::environment::ReadyJob;
use super::work::Tick;
use crate::advisory::AdvisoryLocks;
use crate::error::LockError;
use crate::run::Run;

/// The longest sleep; the clock may have been corrected meanwhile.
const MAX_SLEEP: Duration = Duration::from_secs(10);
/// Between two tries of a tick whose lock the database did not answer for.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// A tick is not begun later than this after its instant.
const MAX_LATENESS: TimeDelta = TimeDelta::seconds(30);

/// A job with all that it needs.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) job: ReadyJob,
    pub(super) clock: Arc<DatabaseClock>,
    pub(super) locks: Option<AdvisoryLocks>,
    pub(super) pool: PgPool,
    pub(super) stop: CancellationToken,
    pub(super) counts: Counts,
}

impl Runner {
    /// Runs until `stop`; a work that runs then goes on to its end.
    pub(super) async fn run(self) {
        let mut after = self.clock.now();
        while let Some(tick) = self.job.timetable.next_after(after)
            && self.wait_until(tick).await
        {
            after = self.fire_latest(tick).await;
        }
        self.stop.cancelled().await;
    }

    /// Waits until the database's clock shows `tick`; false: the service shuts down.
    async fn wait_until(&self, tick: DateTime<Utc>) -> bool {
        loop {
            let left = (tick - self.clock.now()).to_std().unwrap_or_default();
            if left.is_zero() {
                return !self.stop.is_cancelled();
            }
            tokio::select! {
                () = self.stop.cancelled() => return false,
                // A part of a millisecond is waited for as a whole one.
                () = sleep(left.min(MAX_SLEEP)) => {}
            }
        }
    }

    /// Fires the tick, or the last one that has come since; returns the instant after which the next one is.
    async fn fire_latest(&self, tick: DateTime<Utc>) -> DateTime<Utc> {
        let name = &*self.job.name;
        let now = self.clock.now();
        let (passed, last) = self.job.timetable.passed(tick, now);
        let tick = last.unwrap_or(tick);
        let is_late = now - tick > MAX_LATENESS;
        let missed = passed + u64::from(is_late);
        if missed > 0 {
            self.counts.add(Count::Missed, missed);
            tracing::warn!(
                job.name = name,
                missed,
                "{missed} ticks of {name} were missed: this instance stood still, or the database's clock was set"
            );
        }
        if is_late {
            return now.max(tick);
        }
        let ran = self.fire(tick).await;
        let now = self.clock.now();
        let (passed, last) = self.job.timetable.passed(tick, now);
        if passed > 0 {
            self.counts.add(if ran { Count::Overrun } else { Count::Missed }, passed);
            tracing::warn!(
                job.name = name,
                passed,
                "{passed} ticks of {name} passed while the one of {tick} {}",
                if ran { "ran (overrun)" } else { "waited for the database" }
            );
        }
        last.unwrap_or(tick)
    }

    /// Tries a tick, again and again where the database does not answer; whether its work began here.
    async fn fire(&self, tick: DateTime<Utc>) -> bool {
        let name = &*self.job.name;
        let mut was_unanswered = false;
        loop {
            let began = Instant::now();
            match self.try_tick(tick).await {
                Ok(Run::Busy) if was_unanswered => {
                    self.counts.add(Count::Missed, 1);
                    tracing::error!(
                        job.name = name,
                        %tick,
                        "the tick {tick} of {name} may have been missed: an earlier try that was not answered may have taken it"
                    );
                    return false;
                }
                Ok(run) => return self.record(tick, run, began.elapsed()),
                Err(error) => {
                    let is_over = self.clock.now() - tick > MAX_LATENESS
                        || !matches!(error, LockError::Database(_))
                        || self.stop.is_cancelled();
                    if is_over {
                        self.counts.add(Count::Missed, 1);
                        tracing::error!(job.name = name, %tick, %error, "the tick {tick} of {name} was missed: {error}");
                        return false;
                    }
                    was_unanswered = true;
                    tracing::warn!(job.name = name, %tick, %error, "the tick {tick} of {name} is tried again: {error}");
                }
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = sleep(RETRY_INTERVAL) => {}
            }
        }
    }

    async fn try_tick(&self, tick: DateTime<Utc>) -> Result<Run<Result<(), String>>, LockError> {
        let work = |_| async {
            let name = &*self.job.name;
            tracing::info!(job.name = name, %tick, "{name} begins for {tick}");
            let stop = self.stop.child_token();
            // Also when the work is dropped: what it has started follows the token.
            let _ended = stop.clone().drop_guard();
            self.job.work.run(Tick::new(Arc::clone(&self.job.name), tick, stop)).await
        };
        match (&self.job.lock, &self.locks) {
            (Lock::Advisory(key), Some(locks)) => locks.try_run_tick(*key, tick, work).await,
            (Lock::Advisory(_), None) => Err(LockError::Closed),
            (Lock::Row(row), _) => row.try_run_tick(&self.pool, tick, work).await,
        }
    }

    fn record(&self, tick: DateTime<Utc>, run: Run<Result<(), String>>, took: Duration) -> bool {
        let name = &*self.job.name;
        let count = match run {
            Run::Busy => {
                tracing::debug!(job.name = name, %tick, "another instance has the tick {tick} of {name}");
                Count::Skipped
            }
            Run::Done(Ok(())) => {
                tracing::info!(job.name = name, %tick, "{name} succeeded for {tick} within {took:?}");
                Count::Succeeded
            }
            Run::Done(Err(error)) => {
                tracing::error!(job.name = name, %tick, %error, "{name} failed for {tick}: {error}");
                Count::Failed
            }
            Run::Lost => {
                tracing::error!(job.name = name, %tick, "{name} was dropped for {tick}, since its lock was lost");
                Count::Lost
            }
            Run::Uncertain(outcome) => {
                let outcome = outcome.err().unwrap_or_else(|| "it succeeded".to_owned());
                tracing::error!(
                    job.name = name,
                    %tick,
                    "{name} ended for {tick}, but its lock may have been lost before: {outcome}"
                );
                Count::Lost
            }
        };
        self.counts.add(count, 1);
        !matches!(count, Count::Skipped)
    }
}
