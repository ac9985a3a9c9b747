//! The planner: claims each firing a few milliseconds before it is due.
//!
//! One transaction claims a batch of jobs; their tickets go to the publishing task after the commit. Replicas
//! split the due jobs by `SKIP LOCKED`, and the unique row is the guard, so any number of planners may run.
//! Then the planner sleeps until the next claim by the database's clock, computed from the database's own
//! answer; this host's clock is never used.
//!
//! **Lag.** A ticket needs a transaction's round trips, on a dedicated connection, so that the planner never waits for
//! the pool, and then the broker. The claim is earlier by about that ([`firing::CLAIM_LEAD_MS`]); the open is not.
//!
//! **Overlap.** Each round admits the waiters whose jobs are free (`admission`): before the claims if there
//! were waiters at the end of the previous round, and otherwise after them. While there are waiters, the sleep
//! is as short as `admission` requires. A claim that replaces a running execution marks that one in the same
//! transaction, and the commit notifies the workers.
//!
//! **Failures.** A crash before the commit leaves nothing, one after it leaves unpublished tickets for the
//! relay. After an error at the commit its result is unknown: the next round finds either the old cursors and
//! claims again, or the new ones. A job that cannot be planned is quarantined and logged; its row does not
//! change. While the broker is down, claiming continues and the tickets stay unpublished in the rows.

mod admission;
mod claim_batch;
pub mod cursors;
mod execution_ids;
mod next_wakeup;
mod quarantine;
mod report;
mod timetable_cache;
mod traces;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sexton_model::id::{ExecutionId, JobId};
use sexton_service::fault;
use sexton_store::dedicated_connection::DedicatedConnection;
use sexton_store::firing::{self, ClaimTransaction, DueJob, FailingJob, Replaced, UnreadableJob};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store, StoreError};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use self::admission::{Admissions, Round};
use self::claim_batch::ClaimBatch;
use self::execution_ids::execution_id;
use self::next_wakeup::sleep_after_round;
use self::quarantine::Quarantine;
pub use self::report::PlannerReport;
use self::report::log_jump;
use self::timetable_cache::TimetableCache;
use crate::adaptive_batch::AdaptiveBatch;
use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};
use crate::publish::dispatch::Dispatch;

/// The most jobs in one claim transaction; fewer if the database is too slow.
pub const MAX_BATCH_JOBS: usize = 1_000;
/// The most transactions in one round; if more are needed, another round follows at once.
const MAX_ROUND_TRANSACTIONS: usize = 50;
/// The longest sleep, because a notification may be lost. Jittered by a tenth to either side.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The loop that claims due firings.
#[derive(Debug)]
pub struct Planner {
    dispatch: Dispatch,
    /// Held by one round at a time.
    dedicated: AsyncMutex<DedicatedConnection>,
    admissions: Admissions,
    /// Whether there may be waiters: if so, they are admitted before the claims, otherwise after them.
    waiting: AtomicBool,
    claimed_by: String,
    timetable_cache: Mutex<TimetableCache>,
    quarantine: Quarantine,
    batch_size: AdaptiveBatch,
    hold_after: Option<Duration>,
}

/// A transaction that failed.
struct Failure {
    error: LoopError,
    /// The job, if the transaction had only one.
    only_job: Option<UnreadableJob>,
}

impl<E: Into<LoopError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.into(), only_job: None }
    }
}

impl Planner {
    /// Creates a planner; `claimed_by` is `<instance>:<pid>`, for the rows.
    pub fn new(store: Store, dispatch: Dispatch, claimed_by: impl Into<String>) -> Self {
        Self {
            dedicated: AsyncMutex::new(DedicatedConnection::new(&store)),
            admissions: Admissions::new(store, dispatch.clone()),
            waiting: AtomicBool::new(true),
            dispatch,
            claimed_by: claimed_by.into(),
            timetable_cache: Mutex::default(),
            quarantine: Quarantine::default(),
            batch_size: AdaptiveBatch::with_max(MAX_BATCH_JOBS),
            hold_after: None,
        }
    }

    /// Holds catch-up after the database's clock jumped forward by more than `limit`, or back. Without this a
    /// planner notices no jump; it still obeys holds that other planners have begun.
    #[must_use]
    pub fn hold_after(mut self, limit: Duration) -> Self {
        self.hold_after = Some(limit);
        self
    }

    /// Releases all quarantined jobs, because a job may have been corrected.
    pub fn release_quarantine(&self) {
        self.quarantine.release_all();
    }

    /// Claims until no job is due. After a batch that the database refuses, jobs are claimed one by one until
    /// the faulty one is found and quarantined.
    async fn claim_all(&self, now: Now, report: &mut PlannerReport) -> Result<bool, LoopError> {
        let mut single_jobs_left = 0_usize;
        let mut transactions = 0;
        let mut deferred = Vec::new();
        while transactions < MAX_ROUND_TRANSACTIONS {
            let limit = if single_jobs_left > 0 { 1 } else { self.batch_size.size() };
            match self.claim(limit, now, report, &mut deferred).await {
                Ok(more) => {
                    if !more {
                        return Ok(true);
                    }
                    single_jobs_left = single_jobs_left.saturating_sub(1);
                    transactions += usize::from(single_jobs_left == 0);
                }
                Err(Failure { error, only_job }) => {
                    if !is_row_error(&error) {
                        return Err(error);
                    }
                    match only_job {
                        Some(job) => {
                            let why = error.to_string();
                            self.quarantine_job(&UnreadableJob { why, ..job }, report);
                            single_jobs_left = 0;
                        }
                        None if limit == 1 => return Err(error),
                        None => single_jobs_left = MAX_BATCH_JOBS,
                    }
                    transactions += 1;
                }
            }
        }
        Ok(false)
    }

    /// Runs one claim transaction; returns whether more jobs may be due. Jobs in `deferred` follow in the next
    /// round, at once.
    async fn claim(
        &self,
        limit: usize,
        now: Now,
        report: &mut PlannerReport,
        deferred: &mut Vec<JobId>,
    ) -> Result<bool, Failure> {
        let mut except = self.quarantine.jobs(Instant::now());
        except.extend_from_slice(deferred);
        let mut dedicated = self.dedicated.lock().await;
        let mut connection = with_timeout(QUERY_TIMEOUT, dedicated.acquire()).await?;
        let mut transaction =
            with_timeout(QUERY_TIMEOUT, ClaimTransaction::begin_on(&mut connection, now)).await?;
        let look =
            with_timeout(QUERY_TIMEOUT, transaction.read_clock(self.hold_after, &self.claimed_by))
                .await?;
        report.looked_at = Some(look.now);
        let due = with_timeout(QUERY_TIMEOUT, transaction.due_jobs(limit as i64, &except)).await?;
        for job in &due.unreadable {
            self.quarantine_job(job, report);
        }
        let full =
            due.jobs.len() + due.unreadable.len() + due.paused.len() + due.deferred.len() >= limit;
        deferred.extend(due.deferred);
        if due.jobs.is_empty() && due.paused.is_empty() {
            if look.wrote {
                with_timeout(QUERY_TIMEOUT, transaction.commit()).await?;
                look.noticed.iter().for_each(log_jump);
            } else {
                // A mere drop would release the deferred jobs' rows later, and other transactions wait for them.
                with_timeout(QUERY_TIMEOUT, transaction.rollback()).await?;
            }
            connection.release();
            return Ok(full);
        }
        let jobs = due.jobs;
        let batch = {
            let mut timetable_cache =
                self.timetable_cache.lock().unwrap_or_else(PoisonError::into_inner);
            ClaimBatch::plan(&jobs, look.held, &mut timetable_cache, execution_id)
        };
        for job in &batch.unreadable {
            self.quarantine_job(job, report);
        }
        let more = full || batch.more;
        match self.write(transaction, batch, &jobs).await {
            Ok(written) => {
                connection.release();
                due.paused.iter().for_each(log_paused);
                look.noticed.iter().for_each(log_jump);
                self.batch_size.grow(jobs.len());
                report.add(&written);
                Ok(more)
            }
            Err(error) => {
                if matches!(&error, LoopError::Store(error) if error.is_transient()) {
                    self.batch_size.shrink(jobs.len());
                }
                let only_job = match &jobs[..] {
                    [job] => Some(UnreadableJob {
                        id: job.id,
                        name: job.name.clone(),
                        why: String::new(),
                    }),
                    _ => None,
                };
                Err(Failure { error, only_job })
            }
        }
    }

    async fn write(
        &self,
        mut transaction: ClaimTransaction<'_>,
        mut batch: ClaimBatch,
        jobs: &[DueJob],
    ) -> Result<PlannerReport, LoopError> {
        let began = traces::place(&mut batch.claims);
        let (inserted, replaced) = match self.record(&mut transaction, &mut batch, jobs).await {
            Ok(recorded) => recorded,
            Err(error) => {
                if is_row_error(&error) {
                    // A mere drop would unlock these jobs later than the next transaction looks for them.
                    let _ = with_timeout(QUERY_TIMEOUT, transaction.rollback()).await;
                }
                return Err(error);
            }
        };
        if !inserted.is_empty() {
            fault::point("scheduler.claiming");
        }
        with_timeout(QUERY_TIMEOUT, transaction.commit()).await?;
        traces::record_firings(&batch, jobs, &inserted, began);
        let waiting = batch.waiters(&inserted);
        if waiting > 0 {
            fault::point("scheduler.waiting");
        }
        batch.moved.iter().for_each(cursors::log_moved_cursor);
        let mut written = PlannerReport {
            known: batch.claims.len() - inserted.len(),
            waiting,
            replaced: replaced.running + replaced.cancelled,
            missed: batch.gaps.iter().map(|gap| u64::from(gap.count)).sum(),
            held: batch.held.iter().map(|(_, gap)| u64::from(gap.count)).sum(),
            ..PlannerReport::default()
        };
        written.skipped = batch.skipped(&inserted);
        written.claimed = inserted.len() - written.skipped - waiting;
        let tickets = batch.tickets(jobs, &inserted);
        if !tickets.is_empty() {
            fault::point("scheduler.claimed");
        }
        written.left_to_relay = written.claimed - tickets.len();
        if !self.dispatch.offer(tickets) {
            written.left_to_relay = written.claimed;
        }
        Ok(written)
    }

    /// Writes all decisions of a batch; returns which claims are new, and what they replaced.
    async fn record(
        &self,
        transaction: &mut ClaimTransaction<'_>,
        batch: &mut ClaimBatch,
        jobs: &[DueJob],
    ) -> Result<(Vec<ExecutionId>, Replaced), LoopError> {
        let inserted =
            with_timeout(QUERY_TIMEOUT, transaction.insert(&mut batch.claims, &self.claimed_by))
                .await?;
        if let Some(job) = jobs.first() {
            batch.count_runs(&inserted, job.now);
        }
        let by = batch.replacements(&inserted);
        let replaced = with_timeout(QUERY_TIMEOUT, transaction.replace(&by)).await?;
        let moved = with_timeout(QUERY_TIMEOUT, transaction.advance(&batch.cursors)).await?;
        if moved != batch.cursors.len() as u64 {
            return Err(LoopError::CursorsNotMoved { moved, expected: batch.cursors.len() });
        }
        with_timeout(QUERY_TIMEOUT, transaction.record_gaps(&batch.gaps)).await?;
        with_timeout(QUERY_TIMEOUT, transaction.hold_firings(&batch.held)).await?;
        Ok((inserted, replaced))
    }

    fn quarantine_job(&self, job: &UnreadableJob, report: &mut PlannerReport) {
        report.quarantined += 1;
        self.quarantine.add(job, Instant::now());
    }

    /// Returns how long to sleep until the next claim.
    async fn time_to_next_claim(
        &self,
        now: Now,
        report: &PlannerReport,
    ) -> Result<Duration, LoopError> {
        let except = self.quarantine.jobs(Instant::now());
        let mut dedicated = self.dedicated.lock().await;
        let mut connection = with_timeout(QUERY_TIMEOUT, dedicated.acquire()).await?;
        let started = Instant::now();
        let next =
            with_timeout(QUERY_TIMEOUT, firing::next_claim(&mut *connection, &except, now)).await?;
        connection.release();
        let poll = POLL_INTERVAL.mul_f64(0.9 + 0.2 * fastrand::f64());
        Ok(sleep_after_round(next, report, started.elapsed(), poll))
    }

    /// Runs one round: claims, admits, and decides how long to sleep. After an error `report` has what was done
    /// before.
    async fn round(&self, now: Now, report: &mut PlannerReport) -> Result<(), LoopError> {
        let (all, admitted) = self.claim_and_admit(now, report).await?;
        if all {
            report.sleep = self.time_to_next_claim(now, report).await?;
        } else if report.found() == 0 {
            // There are more unplannable jobs than the quarantine can hold.
            report.sleep = POLL_INTERVAL;
        }
        report.sleep = report.sleep.min(admitted.pause(report.waiting > 0));
        Ok(())
    }

    /// Claims due firings, and admits waiters.
    async fn claim_and_admit(
        &self,
        now: Now,
        report: &mut PlannerReport,
    ) -> Result<(bool, Round), LoopError> {
        // The round assumes waiters until its end: an error in between must not delay them.
        let may_wait = self.waiting.swap(true, Ordering::Relaxed);
        let first = if may_wait { Some(self.admissions.admit_waiters(now).await) } else { None };
        // Due firings are claimed even if the admission failed.
        let all = self.claim_all(now, report).await?;
        let admitted = match first {
            Some(admitted) => admitted?,
            None => self.admissions.admit_waiters(now).await?,
        };
        report.admitted = admitted.admitted;
        self.waiting.store(admitted.has_waiters() || report.waiting > 0, Ordering::Relaxed);
        Ok((all, admitted))
    }
}

impl BackgroundLoop for Planner {
    const NAME: &'static str = "planner";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
    type Report = PlannerReport;

    async fn run_once(&self, now: Now) -> Result<PlannerReport, LoopError> {
        let mut report = PlannerReport::default();
        let round = self.round(now, &mut report).await;
        // The next round will not see what was written before an error.
        report.record();
        round.map(|()| report)
    }

    fn pause(&self, report: &PlannerReport) -> Pause {
        Pause::Due(report.sleep)
    }
}

/// Logs that a job has paused itself.
fn log_paused(job: &FailingJob) {
    tracing::warn!(
        job.name = job.name,
        job.failures = job.failures,
        "{} is paused: {} executions in a row failed",
        job.name,
        job.failures
    );
}

/// Returns whether the error comes from a row, and not from the database or this program's statements.
const fn is_row_error(error: &LoopError) -> bool {
    matches!(
        error,
        LoopError::Store(
            StoreError::Data(_)
                | StoreError::Forbidden(_)
                | StoreError::Statement(_)
                | StoreError::Inconsistent { .. }
        )
    )
}
