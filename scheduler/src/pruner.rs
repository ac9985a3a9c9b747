//! The pruner: retention, daily at 3:00 UTC, by one replica.
//!
//! Small portions with rests in between, so that it is never in anybody's way; of each kind of thing in turn, so that
//! however much there is of one, the others go. When a pass has come to its end for all of them, the database
//! remembers that of that 3:00: so a pass that broke off, or a 3:00 at which no scheduler ran, is made up for, within a
//! minute of the start; and of several replicas one makes it. A pass that was cut short by `LONGEST` is followed by
//! another.
//!
//! A kind that cannot be gone on with (a right is missing, a statement takes too long even for a few rows) is left out
//! of the pass, logged, and tried again later; the others come to their end.

mod turn;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use sexton_service::fault;
use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_store::retention::{self, PrunedBatch, RetentionPolicy, RetentionTarget};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store, StoreError, firing};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::runner::is_outage;
use crate::step::{Pause, Step, StepError};

use turn::Turn;

/// Rows of one transaction.
const BATCH: i64 = 1_000;
/// After a transaction that removed something. One that did not is rested after for as long as it took.
const REST: Duration = Duration::from_millis(100);
/// The longest pass, of a million rows or more.
const LONGEST: Duration = Duration::from_mins(30);
/// How often it asks the database what time it is, and how long it waits after a failure, doubled with each.
const POLL: Duration = Duration::from_mins(1);
/// For one question; the server ends a statement before that.
const ANSWER: Duration = Duration::from_secs(35);
/// For a portion, which is several statements: each of them has the limits of a statement, and one that takes too long
/// makes the portion smaller.
const PORTION: Duration = Duration::from_mins(5);
/// After midnight UTC.
const HOUR: TimeDelta = TimeDelta::hours(3);

/// The loop.
#[derive(Debug)]
pub struct Pruner {
    store: Store,
    terms: RetentionPolicy,
    stop: CancellationToken,
    progress: Mutex<Progress>,
}

/// What this process knows of the latest 3:00.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// The latest 3:00 by which nothing was left to do.
    done: Option<DateTime<Utc>>,
    /// Of this 3:00, these things have come to their end.
    ended: (Option<DateTime<Utc>>, Vec<RetentionTarget>),
    /// After a failure: not before, and how many there were in a row.
    retry: Option<DateTime<Utc>>,
    failures: u32,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prunes {
    /// Nothing is to be done until then.
    Waits(DateTime<Utc>),
    /// Another replica is at it; this one looks again.
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
    /// All other rows that went.
    pub other: u64,
    /// Whether it came to the end.
    pub complete: bool,
}

impl Pruner {
    /// Keeps things for as long as `terms` say. `stop` ends a pass early.
    pub fn new(store: Store, terms: RetentionPolicy, stop: CancellationToken) -> Self {
        Self { store, terms, stop, progress: Mutex::default() }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until when there is nothing to do, as far as this process knows by itself.
    fn waits(&self, now: DateTime<Utc>, latest: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let progress = self.progress();
        if progress.done == Some(latest) {
            return Some(next_run(now));
        }
        progress.retry.filter(|retry| *retry > now)
    }

    async fn prune(&self, latest: DateTime<Utc>, now: Now) -> Result<Option<Prunes>, StepError> {
        if !with_timeout(ANSWER, retention::is_due(&self.store, self.terms, latest)).await? {
            return Ok(None);
        }
        // A connection of its own: it is kept for as long as the pass.
        let lock = ExclusiveLock::try_acquire_dedicated(&self.store, ExclusiveTask::Retention, now);
        let Some(mut lock) = with_timeout(ANSWER, lock).await? else {
            return Ok(Some(Prunes::Elsewhere));
        };
        let mut pruned = Pruned::default();
        let passed = self.pass(&mut lock, latest, &mut pruned, now).await;
        pruned.tell(self.terms.days);
        if matches!(passed, Ok(true)) {
            with_timeout(ANSWER, retention::record_pass(&self.store, self.terms, latest)).await?;
        }
        pruned.complete = passed?;
        // If that fails the lock is gone anyway, and the pass was made.
        if let Err(error) = with_timeout(ANSWER, lock.release()).await {
            tracing::debug!(%error, "the lock of retention was lost");
        }
        Ok(Some(Prunes::Pass(pruned)))
    }

    /// Takes a portion of each thing in turn until all have come to their end; returns whether they have.
    async fn pass(
        &self,
        lock: &mut ExclusiveLock,
        latest: DateTime<Utc>,
        pruned: &mut Pruned,
        now: Now,
    ) -> Result<bool, StepError> {
        let until = Instant::now() + LONGEST;
        let ended = self.ended(latest);
        let left = RetentionTarget::ALL.into_iter().filter(|thing| !ended.contains(thing));
        let mut turns: Vec<Turn> = left.map(|thing| Turn::new(thing, BATCH)).collect();
        let mut failure = None;
        while !turns.is_empty() {
            for turn in &mut turns {
                let began = Instant::now();
                match self.portion(turn, now).await {
                    Ok(portion) => pruned.add(turn.thing, portion),
                    Err(error) if ends_the_pass(&error) => return Err(error.into()),
                    Err(error) if turn.failed(&error) => drop(failure.get_or_insert(error)),
                    Err(_) => {}
                }
                if turn.has_ended() {
                    self.progress().ended.1.push(turn.thing);
                }
                let rest = if turn.removed() { REST } else { began.elapsed().min(REST) };
                if !self.rested(lock, until, rest).await? {
                    return Ok(false);
                }
            }
            turns.retain(Turn::goes_on);
        }
        failure.map_or(Ok(true), |error| Err(error.into()))
    }

    async fn portion(&self, turn: &mut Turn, now: Now) -> Result<PrunedBatch, StoreError> {
        let (thing, most) = (turn.thing, turn.most);
        let position = &mut turn.position;
        let asked = retention::prune_batch(&self.store, thing, position, self.terms, most, now);
        let portion = with_timeout(PORTION, asked).await?;
        turn.did(portion);
        match thing {
            RetentionTarget::Executions | RetentionTarget::OwnKeys | RetentionTarget::Contents
                if turn.removed() =>
            {
                fault::point("scheduler.pruned");
            }
            RetentionTarget::Gaps if turn.removed() => fault::point("scheduler.pruned_gaps"),
            _ => {}
        }
        Ok(portion)
    }

    /// What has come to its end of the pass of `latest`.
    fn ended(&self, latest: DateTime<Utc>) -> Vec<RetentionTarget> {
        let mut progress = self.progress();
        if progress.ended.0 != Some(latest) {
            progress.ended = (Some(latest), Vec::new());
        }
        progress.ended.1.clone()
    }

    /// Rests between two transactions; returns whether the pass goes on.
    async fn rested(
        &self,
        lock: &mut ExclusiveLock,
        until: Instant,
        rest: Duration,
    ) -> Result<bool, StepError> {
        with_timeout(ANSWER, lock.confirm()).await?;
        tokio::select! {
            () = sleep(rest) => {}
            () = self.stop.cancelled() => {}
        }
        Ok(!self.stop.is_cancelled() && Instant::now() < until)
    }
}

impl Step for Pruner {
    const NAME: &'static str = "pruner";
    const LIMIT: Duration = Duration::from_mins(35);
    type Report = Prunes;

    async fn run_once(&self, now: Now) -> Result<Prunes, StepError> {
        let clock = with_timeout(ANSWER, firing::next_due(&self.store, &[], now)).await?.now;
        let latest = next_run(clock) - Days::new(1);
        if let Some(until) = self.waits(clock, latest) {
            return Ok(Prunes::Waits(until));
        }
        let outcome = self.prune(latest, now).await;
        let mut progress = self.progress();
        match outcome {
            Ok(None) => {
                *progress = Progress { done: Some(latest), ..Progress::default() };
                Ok(Prunes::Waits(next_run(clock)))
            }
            Ok(Some(done)) => {
                if matches!(done, Prunes::Pass(pruned) if pruned.complete) {
                    *progress = Progress { done: Some(latest), ..Progress::default() };
                }
                Ok(done)
            }
            Err(error) => {
                // Up to about an hour.
                progress.retry = Some(clock + POLL * 2_u32.pow(progress.failures.min(6)));
                progress.failures = progress.failures.saturating_add(1);
                Err(error)
            }
        }
    }

    fn pause(&self, _: &Prunes) -> Pause {
        Pause::AtMost(POLL)
    }
}

impl Pruned {
    fn add(&mut self, thing: RetentionTarget, portion: PrunedBatch) {
        self.stripped += portion.stripped;
        match thing {
            RetentionTarget::Executions | RetentionTarget::OwnKeys => {
                self.deleted += portion.removed
            }
            _ => self.other += portion.removed,
        }
    }

    fn tell(&self, days: i32) {
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

/// Whether no other thing would fare better.
fn ends_the_pass(error: &StoreError) -> bool {
    is_outage(error) && !matches!(error, StoreError::TooSlow(_))
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
