//! The ledger check: looks for firings without a record, which there must not be.
//!
//! A planner records every firing that its cursor passes: as an execution, or in a gap with the reason. This loop reads
//! the firings again that cursors have passed, and judges each by the ledger's own decision. One without a record means
//! that somebody removed rows, that a backup was restored, or that Sexton has a bug. It is remembered, counted
//! (`sexton_unaccounted_firings`) and logged; a backfill of it removes it again.
//!
//! One scheduler checks at a time, at most 50 jobs in a round, the one first that was not checked for longest: all of a
//! thousand jobs within five minutes.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::explain::{Disposition, UnknownReason, nominal_disposition};
use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_store::ledger::{LedgerPage, LedgerQuery, MAX_FIRINGS, read_page};
use sexton_store::ledger_check::{self, UncheckedRange};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store};
use uuid::Uuid;

use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

/// Jobs in one round.
const MAX_BATCH_JOBS: i64 = 50;
/// Firings without a record that one round looks for again.
const MAX_BATCH_UNACCOUNTED: i64 = 50;
/// A job is not checked again within this time.
const MIN_AGE_S: i32 = 60;
const POLL_INTERVAL: Duration = Duration::from_secs(15);

/// The loop that checks the ledger.
#[derive(Debug)]
pub struct LedgerCheck {
    store: Store,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LedgerCheckReport {
    /// Jobs that were checked.
    pub jobs: usize,
    /// Firings that were checked.
    pub firings: usize,
    /// Of these, firings without a record.
    pub unaccounted: usize,
    /// Firings without a record that have one now.
    pub recovered: usize,
}

impl LedgerCheck {
    /// Creates the loop, whose first round runs at once.
    pub const fn new(store: Store) -> Self {
        Self { store }
    }

    /// Checks the next firings of a job.
    async fn check(
        &self,
        range: UncheckedRange,
        now: Now,
        report: &mut LedgerCheckReport,
    ) -> Result<(), LoopError> {
        let UncheckedRange { job, name, from, to } = range;
        let page = if from < to { self.read(job, from, to, now).await? } else { None };
        let unaccounted = page.as_ref().map(unaccounted).unwrap_or_default();
        // A page that was cut is continued at the next check.
        let cut = page.as_ref().and_then(|page| page.stretch.next.and(page.stretch.firings.last()));
        let until = cut.map_or(to, |last| last.at);
        report.jobs += 1;
        report.firings += page.as_ref().map_or(0, |page| page.stretch.firings.len());
        report.unaccounted += unaccounted.len();
        let recording = ledger_check::record_check(&self.store, job, until, &unaccounted, now);
        with_timeout(QUERY_TIMEOUT, recording).await?;
        if let Some(first) = unaccounted.first() {
            tracing::error!(
                job.name = name,
                firings.unaccounted = unaccounted.len(),
                firing.first = %first,
                "{} firings of {name} have no record, the first of {first}: rows were removed, or a backup was restored; \
                 `sexton jobs backfill` runs them",
                unaccounted.len()
            );
        }
        Ok(())
    }

    /// Looks again for a firing without a record.
    async fn check_again(
        &self,
        job: Uuid,
        at: DateTime<Utc>,
        now: Now,
        report: &mut LedgerCheckReport,
    ) -> Result<(), LoopError> {
        let page = self.read(job, at, at, now).await?;
        if !page.as_ref().is_some_and(|page| unaccounted(page).contains(&at)) {
            let forgetting = ledger_check::forget_unaccounted(&self.store, job, at);
            with_timeout(QUERY_TIMEOUT, forgetting).await?;
            report.recovered += 1;
        }
        Ok(())
    }

    async fn read(
        &self,
        job: Uuid,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        now: Now,
    ) -> Result<Option<LedgerPage>, LoopError> {
        let query = LedgerQuery { job, from, to, max_firings: MAX_FIRINGS };
        Ok(with_timeout(QUERY_TIMEOUT, read_page(&self.store, query, now)).await?)
    }
}

/// Returns the firings of a page that have no record.
fn unaccounted(page: &LedgerPage) -> Vec<DateTime<Utc>> {
    let is_unaccounted = |at: DateTime<Utc>, key: &str| {
        let recorded = page.executions.get(key).map(|execution| &execution.recorded);
        let job = (&page.job, page.now);
        nominal_disposition(at, &page.history, recorded, &page.gaps, job)
            == Disposition::Unknown(UnknownReason::Unaccounted)
    };
    let firings = page.stretch.firings.iter();
    firings
        .filter(|firing| is_unaccounted(firing.at, &firing.key))
        .map(|firing| firing.at)
        .collect()
}

/// Keeps the first failure of a round that is one job's, such as a revision that cannot be read: the round goes on without
/// this job, and fails at its end. Any other failure ends the round.
fn note_failure(
    failed: &mut Result<(), LoopError>,
    outcome: Result<(), LoopError>,
) -> Result<(), LoopError> {
    match outcome {
        Err(LoopError::Store(error)) if !error.is_transient() => {
            if failed.is_ok() {
                *failed = Err(error.into());
            }
            Ok(())
        }
        outcome => outcome,
    }
}

impl BackgroundLoop for LedgerCheck {
    const NAME: &'static str = "ledger_check";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
    type Report = LedgerCheckReport;

    async fn run_once(&self, now: Now) -> Result<LedgerCheckReport, LoopError> {
        let mut report = LedgerCheckReport::default();
        let locking = ExclusiveLock::try_acquire(&self.store, ExclusiveTask::LedgerCheck, now);
        let Some(mut lock) = with_timeout(QUERY_TIMEOUT, locking).await? else {
            return Ok(report);
        };
        let taking = ledger_check::take_unchecked(&self.store, MAX_BATCH_JOBS, MIN_AGE_S, now);
        let mut failed = Ok(());
        for range in with_timeout(QUERY_TIMEOUT, taking).await? {
            note_failure(&mut failed, self.check(range, now, &mut report).await)?;
            lock.confirm().await?;
        }
        let taking = ledger_check::take_unaccounted(&self.store, MAX_BATCH_UNACCOUNTED, now);
        for (job, at) in with_timeout(QUERY_TIMEOUT, taking).await? {
            note_failure(&mut failed, self.check_again(job, at, now, &mut report).await)?;
        }
        with_timeout(QUERY_TIMEOUT, lock.release()).await?;
        failed.map(|()| report)
    }

    fn pause(&self, _: &LedgerCheckReport) -> Pause {
        Pause::AtMost(POLL_INTERVAL)
    }
}
