//! The pruner: retention, daily at 3:00 UTC, by one replica.
//!
//! Small transactions with rests in between, so that it never is in anybody's way. Whether the latest
//! 3:00 has been seen to is asked of the rows and remembered nowhere else: while something is there
//! that should have gone by then, a pass is due. So a pass that broke off, or a 3:00 at which no
//! scheduler ran, is made up for, within a minute of the start; and of several replicas one makes it.
//! A pass that was cut short by `LONGEST` goes on in the same way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use sexton_service::fault;
use sexton_store::exclusive::{Exclusive, ExclusiveTask};
use sexton_store::{Now, Store, bulk, firing, raw, retention};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::step::{Pause, Step, StepError};
use sexton_store::answer::within;

/// Rows of one transaction.
const BATCH: i64 = 1_000;
/// Between two transactions.
const REST: Duration = Duration::from_millis(100);
/// The longest pass, of a million rows or more.
const LONGEST: Duration = Duration::from_mins(30);
/// How often it asks the database what time it is, and how long it waits after a failure.
const POLL: Duration = Duration::from_mins(1);
/// For one question; the server ends a statement before that.
const ANSWER: Duration = Duration::from_secs(35);
/// After midnight UTC.
const HOUR: TimeDelta = TimeDelta::hours(3);

/// The loop.
#[derive(Debug)]
pub struct Pruner {
    store: Store,
    days: u32,
    held: Arc<tokio::sync::Mutex<()>>,
    stop: CancellationToken,
    progress: Mutex<Progress>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The latest 3:00 by which nothing was left to do.
    done: Option<DateTime<Utc>>,
    /// After a failure: not before.
    retry: Option<DateTime<Utc>>,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prunes {
    /// Nothing is to be done until then.
    Waits(DateTime<Utc>),
    /// Another replica, or other long work of this process, is at it; this one looks again.
    Elsewhere,
    /// A pass was made.
    Pass(Pruned),
}

/// What a pass removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pruned {
    /// Executions that went.
    pub deleted: u64,
    /// Executions with a caller's own key that were stripped to it.
    pub stripped: u64,
    /// Gaps, instances, messages that no row knew, and bulks and their items that went.
    pub other: u64,
    /// Whether it came to the end.
    pub complete: bool,
}

impl Pruner {
    /// Keeps finished executions for `days`. `held` is shared by the loops of this process that keep
    /// a connection for long, `stop` ends a pass early.
    pub fn new(
        store: Store,
        days: u32,
        held: Arc<tokio::sync::Mutex<()>>,
        stop: CancellationToken,
    ) -> Self {
        Self { store, days, held, stop, progress: Mutex::default() }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until when there is nothing to do, of which the rows of `latest` are not asked.
    fn waits(&self, now: DateTime<Utc>, latest: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let progress = *self.progress();
        if progress.done == Some(latest) {
            return Some(next_run(now));
        }
        progress.retry.filter(|retry| *retry > now)
    }

    async fn prune(&self, latest: DateTime<Utc>, now: Now) -> Result<Option<Prunes>, StepError> {
        let days = self.days as i32;
        if !within(ANSWER, retention::is_due(&self.store, days, latest)).await? {
            return Ok(None);
        }
        let Ok(_held) = self.held.try_lock() else { return Ok(Some(Prunes::Elsewhere)) };
        let lock = Exclusive::try_acquire(&self.store, ExclusiveTask::Retention, now);
        let Some(lock) = within(ANSWER, lock).await? else { return Ok(Some(Prunes::Elsewhere)) };
        let pruned = self.pass(lock, now).await?;
        pruned.tell(self.days);
        Ok(Some(Prunes::Pass(pruned)))
    }

    async fn pass(&self, mut lock: Exclusive, now: Now) -> Result<Pruned, StepError> {
        let days = self.days as i32;
        let until = Instant::now() + LONGEST;
        let mut pruned = Pruned::default();
        let mut from = None;
        let mut goes_on = self.goes_on(until);
        while goes_on {
            let batch = retention::prune(&self.store, days, from, BATCH, now);
            let batch = within(ANSWER, batch).await?;
            pruned.deleted += batch.deleted;
            pruned.stripped += batch.stripped;
            from = batch.next;
            if batch.deleted + batch.stripped > 0 {
                fault::point("scheduler.pruned");
            }
            if from.is_none() {
                pruned.complete = self.others(&mut lock, until, &mut pruned.other, now).await?;
                break;
            }
            goes_on = self.rested(&mut lock, until).await?;
        }
        // If that fails the lock is gone anyway, and the pass was made.
        if let Err(error) = within(ANSWER, lock.release()).await {
            tracing::debug!(%error, "the lock of retention was lost");
        }
        Ok(pruned)
    }

    /// Removes what goes beside executions, and counts it; returns whether it came to the end.
    async fn others(
        &self,
        lock: &mut Exclusive,
        until: Instant,
        removed: &mut u64,
        now: Now,
    ) -> Result<bool, StepError> {
        let days = self.days as i32;
        *removed = within(ANSWER, retention::prune_gaps(&self.store, days, now)).await?;
        if *removed > 0 {
            fault::point("scheduler.pruned_gaps");
        }
        *removed += within(ANSWER, retention::prune_instances(&self.store, days, now)).await?;
        loop {
            let raw = within(ANSWER, raw::prune(&self.store, days, now)).await?;
            *removed += raw;
            if raw < BATCH as u64 {
                break;
            }
            if !self.rested(lock, until).await? {
                return Ok(false);
            }
        }
        loop {
            let rows = within(ANSWER, bulk::prune(&self.store, days, now)).await?;
            *removed += rows;
            if rows == 0 {
                return Ok(true);
            }
            if !self.rested(lock, until).await? {
                return Ok(false);
            }
        }
    }

    /// Rests between two transactions; returns whether the pass goes on.
    async fn rested(&self, lock: &mut Exclusive, until: Instant) -> Result<bool, StepError> {
        within(ANSWER, lock.confirm()).await?;
        tokio::select! {
            () = sleep(REST) => {}
            () = self.stop.cancelled() => {}
        }
        Ok(self.goes_on(until))
    }

    fn goes_on(&self, until: Instant) -> bool {
        !self.stop.is_cancelled() && Instant::now() < until
    }
}

impl Step for Pruner {
    const NAME: &'static str = "pruner";
    const LIMIT: Duration = Duration::from_mins(35);
    type Report = Prunes;

    async fn run_once(&self, now: Now) -> Result<Prunes, StepError> {
        let clock = within(ANSWER, firing::next_due(&self.store, &[], now)).await?.now;
        let latest = next_run(clock) - Days::new(1);
        if let Some(until) = self.waits(clock, latest) {
            return Ok(Prunes::Waits(until));
        }
        let outcome = self.prune(latest, now).await;
        let mut progress = self.progress();
        match outcome {
            Ok(None) => {
                *progress = Progress { done: Some(latest), retry: None };
                Ok(Prunes::Waits(next_run(clock)))
            }
            Ok(Some(done)) => {
                if matches!(done, Prunes::Pass(pruned) if pruned.complete) {
                    *progress = Progress { done: Some(latest), retry: None };
                }
                Ok(done)
            }
            Err(error) => {
                progress.retry = Some(clock + POLL);
                Err(error)
            }
        }
    }

    fn pause(&self, _: &Prunes) -> Pause {
        Pause::AtMost(POLL)
    }
}

impl Pruned {
    fn tell(&self, days: u32) {
        tracing::info!(
            executions.deleted = self.deleted,
            executions.stripped = self.stripped,
            retention.complete = self.complete,
            "retention removed {} executions that had finished more than {days} days ago",
            self.deleted
        );
    }
}

/// The first 3:00 UTC strictly after `now`.
pub fn next_run(now: DateTime<Utc>) -> DateTime<Utc> {
    let today = now.date_naive().and_time(NaiveTime::MIN).and_utc() + HOUR;
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
