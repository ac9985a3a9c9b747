//! The planner: claims the firings that are due, at the instant they are due.
//!
//! One transaction claims a batch of jobs; their tickets are handed to the publishing task after
//! the commit. Replicas split the due set by `SKIP LOCKED`, and the unique row is the guard, so any
//! number of planners may run. Then it sleeps until the next due instant by the database's clock,
//! measured from the database's own answer; this host's clock is never asked.
//!
//! **Lag.** What is between the instant and the ticket are one transaction's round trips on a connection of its own, which
//! nobody has to be asked for.
//!
//! **Overlap.** Each round admits the waiters whose jobs are free (`admission`): before it claims if anybody waited at
//! the end of the one before, and else after it. While anybody waits it sleeps no longer than a look at them is worth. A claim that replaces what is
//! under way marks it in the same transaction, and the commit tells the workers.
//!
//! **Failures.** A crash before the commit leaves nothing, one after it leaves owed tickets for the
//! relay. An error at the commit tells nothing about it: the next round finds either the old cursors
//! and claims again, or the new ones. A job that cannot be planned is set aside and named; its row
//! is not touched. While the broker is away, claiming goes on and the debt stays in the rows.

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

use crate::admission::{Admissions, Round};
use crate::alarm::rest;
use crate::batch::Batch;
use crate::cursors;
use crate::dispatch::Dispatch;
use crate::draw;
use crate::holds;
pub use crate::planned::Planned;
use crate::portion::Portion;
use crate::quarantine::Quarantine;
use crate::step::{ANSWER, Pause, Step, StepError};
use crate::timetables::Timetables;

/// Jobs that one transaction claims; fewer where the database is too slow for so many.
pub const BATCH: usize = 1_000;
/// Transactions of one round; a round that needs more is followed by another at once.
const TRANSACTIONS: usize = 50;
/// The longest sleep: a notification may be lost. Varied by a tenth to either side.
const POLL: Duration = Duration::from_secs(5);

/// The loop.
#[derive(Debug)]
pub struct Planner {
    dispatch: Dispatch,
    /// One round at a time has it.
    own: AsyncMutex<DedicatedConnection>,
    admissions: Admissions,
    /// Whether anybody may wait: looked for before the claims, and not after them.
    waiting: AtomicBool,
    by: String,
    timetables: Mutex<Timetables>,
    quarantine: Quarantine,
    portion: Portion,
    hold_after: Option<Duration>,
}

/// A transaction that did not come to its end.
struct Failure {
    error: StepError,
    /// The one job that was in it.
    alone: Option<UnreadableJob>,
}

impl<E: Into<StepError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.into(), alone: None }
    }
}

impl Planner {
    /// `by` is `<instance>:<pid>`, for the rows.
    pub fn new(store: Store, dispatch: Dispatch, by: impl Into<String>) -> Self {
        Self {
            own: AsyncMutex::new(DedicatedConnection::new(&store)),
            admissions: Admissions::new(store, dispatch.clone()),
            waiting: AtomicBool::new(true),
            dispatch,
            by: by.into(),
            timetables: Mutex::default(),
            quarantine: Quarantine::default(),
            portion: Portion::up_to(BATCH),
            hold_after: None,
        }
    }

    /// Catch-up is held after the database's time jumped by more than `limit`, or back. Without this
    /// a planner notices no jump; it keeps to a hold that others have begun.
    #[must_use]
    pub fn hold_after(mut self, limit: Duration) -> Self {
        self.hold_after = Some(limit);
        self
    }

    /// Jobs may have been corrected: none is set aside any longer.
    pub fn jobs_changed(&self) {
        self.quarantine.release();
    }

    /// Claims until nothing is due. After a batch that the database refuses, jobs are claimed one by
    /// one until the culprit is found and set aside.
    async fn claim_all(&self, now: Now, planned: &mut Planned) -> Result<bool, StepError> {
        let mut one_by_one = 0_usize;
        let mut transactions = 0;
        let mut deferred = Vec::new();
        while transactions < TRANSACTIONS {
            let limit = if one_by_one > 0 { 1 } else { self.portion.jobs() };
            match self.claim(limit, now, planned, &mut deferred).await {
                Ok(more) => {
                    if !more {
                        return Ok(true);
                    }
                    one_by_one = one_by_one.saturating_sub(1);
                    transactions += usize::from(one_by_one == 0);
                }
                Err(Failure { error, alone }) => {
                    if !is_about_a_row(&error) {
                        return Err(error);
                    }
                    match alone {
                        Some(job) => {
                            let why = error.to_string();
                            self.set_aside(&UnreadableJob { why, ..job }, planned);
                            one_by_one = 0;
                        }
                        None if limit == 1 => return Err(error),
                        None => one_by_one = BATCH,
                    }
                    transactions += 1;
                }
            }
        }
        Ok(false)
    }

    /// One claim transaction; whether more may be due. Jobs that are `deferred` come up in the next
    /// round, in a moment.
    async fn claim(
        &self,
        limit: usize,
        now: Now,
        planned: &mut Planned,
        deferred: &mut Vec<JobId>,
    ) -> Result<bool, Failure> {
        let mut except = self.quarantine.jobs(Instant::now());
        except.extend_from_slice(deferred);
        let mut own = self.own.lock().await;
        let mut lent = with_timeout(ANSWER, own.acquire()).await?;
        let mut transaction =
            with_timeout(ANSWER, ClaimTransaction::begin_on(&mut lent, now)).await?;
        let look = with_timeout(ANSWER, transaction.read_clock(self.hold_after, &self.by)).await?;
        planned.looked_at = Some(look.now);
        let due = with_timeout(ANSWER, transaction.due_jobs(limit as i64, &except)).await?;
        for job in &due.unreadable {
            self.set_aside(job, planned);
        }
        let full =
            due.jobs.len() + due.unreadable.len() + due.paused.len() + due.deferred.len() >= limit;
        deferred.extend(due.deferred);
        if due.jobs.is_empty() && due.paused.is_empty() {
            if look.wrote {
                with_timeout(ANSWER, transaction.commit()).await?;
                look.noticed.iter().for_each(holds::tell);
            } else {
                // Not only dropped: the rows of who is put off are somebody's who is about to end.
                with_timeout(ANSWER, transaction.rollback()).await?;
            }
            lent.release();
            return Ok(full);
        }
        let jobs = due.jobs;
        let batch = {
            let mut timetables = self.timetables.lock().unwrap_or_else(PoisonError::into_inner);
            Batch::plan(&jobs, look.held, &mut timetables, draw::execution_id)
        };
        for job in &batch.unreadable {
            self.set_aside(job, planned);
        }
        let more = full || batch.more;
        match self.write(transaction, batch, &jobs).await {
            Ok(written) => {
                lent.release();
                due.paused.iter().for_each(tell_paused);
                look.noticed.iter().for_each(holds::tell);
                self.portion.written(jobs.len());
                planned.add(&written);
                Ok(more)
            }
            Err(error) => {
                if matches!(&error, StepError::Store(error) if error.is_transient()) {
                    self.portion.too_much(jobs.len());
                }
                let alone = match &jobs[..] {
                    [job] => Some(UnreadableJob {
                        id: job.id,
                        name: job.name.clone(),
                        why: String::new(),
                    }),
                    _ => None,
                };
                Err(Failure { error, alone })
            }
        }
    }

    async fn write(
        &self,
        mut transaction: ClaimTransaction<'_>,
        mut batch: Batch,
        jobs: &[DueJob],
    ) -> Result<Planned, StepError> {
        let (inserted, replaced) = match self.record(&mut transaction, &mut batch, jobs).await {
            Ok(recorded) => recorded,
            Err(error) => {
                if is_about_a_row(&error) {
                    // Not only dropped: the next transaction begins at once, on another connection,
                    // and would find these jobs locked still.
                    let _ = with_timeout(ANSWER, transaction.rollback()).await;
                }
                return Err(error);
            }
        };
        if !inserted.is_empty() {
            fault::point("scheduler.claiming");
        }
        with_timeout(ANSWER, transaction.commit()).await?;
        let waiting = batch.waiters(&inserted);
        if waiting > 0 {
            fault::point("scheduler.waiting");
        }
        batch.moved.iter().for_each(cursors::tell);
        let mut written = Planned {
            known: batch.claims.len() - inserted.len(),
            waiting,
            replaced: replaced.running + replaced.cancelled,
            missed: batch.gaps.iter().map(|gap| u64::from(gap.count)).sum(),
            held: batch.held.iter().map(|(_, gap)| u64::from(gap.count)).sum(),
            ..Planned::default()
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

    /// Writes all that a batch decides; returns which claims are new, and what they replaced.
    async fn record(
        &self,
        transaction: &mut ClaimTransaction<'_>,
        batch: &mut Batch,
        jobs: &[DueJob],
    ) -> Result<(Vec<ExecutionId>, Replaced), StepError> {
        let inserted = with_timeout(ANSWER, transaction.insert(&batch.claims, &self.by)).await?;
        if let Some(job) = jobs.first() {
            batch.count_runs(&inserted, job.now);
        }
        let by = batch.replacements(&inserted);
        let replaced = with_timeout(ANSWER, transaction.replace(&by)).await?;
        let moved = with_timeout(ANSWER, transaction.advance(&batch.cursors)).await?;
        if moved != batch.cursors.len() as u64 {
            return Err(StepError::Cursors { moved, meant: batch.cursors.len() });
        }
        with_timeout(ANSWER, transaction.record_gaps(&batch.gaps)).await?;
        with_timeout(ANSWER, transaction.hold_firings(&batch.held)).await?;
        Ok((inserted, replaced))
    }

    fn set_aside(&self, job: &UnreadableJob, planned: &mut Planned) {
        planned.set_aside += 1;
        self.quarantine.set_aside(job, Instant::now());
    }

    /// How long to sleep until the next firing is due.
    async fn look_ahead(&self, now: Now, planned: &Planned) -> Result<Duration, StepError> {
        let except = self.quarantine.jobs(Instant::now());
        let mut own = self.own.lock().await;
        let mut lent = with_timeout(ANSWER, own.acquire()).await?;
        let asked = Instant::now();
        let due = with_timeout(ANSWER, firing::next_due(&mut *lent, &except, now)).await?;
        lent.release();
        let poll = POLL.mul_f64(0.9 + 0.2 * draw::fraction());
        Ok(rest(due, planned, asked.elapsed(), poll))
    }

    /// One round, told in `planned` as far as it came: claims, admits, and decides how long to sleep.
    async fn round(&self, now: Now, planned: &mut Planned) -> Result<(), StepError> {
        let (all, admitted) = self.claim_and_admit(now, planned).await?;
        if all {
            planned.sleep = self.look_ahead(now, planned).await?;
        } else if planned.found() == 0 {
            // More jobs than can be set aside cannot be planned.
            planned.sleep = POLL;
        }
        planned.sleep = planned.sleep.min(admitted.pause(planned.waiting > 0));
        Ok(())
    }

    /// Claims what is due, and admits who waits.
    async fn claim_and_admit(
        &self,
        now: Now,
        planned: &mut Planned,
    ) -> Result<(bool, Round), StepError> {
        // Until the end of the round is known to be none: an error in between must not keep them waiting.
        let before = self.waiting.swap(true, Ordering::Relaxed);
        let first = if before { Some(self.admissions.round(now).await) } else { None };
        // Whatever became of the admission: what is due is claimed.
        let all = self.claim_all(now, planned).await?;
        let admitted = match first {
            Some(admitted) => admitted?,
            None => self.admissions.round(now).await?,
        };
        planned.admitted = admitted.admitted;
        self.waiting.store(admitted.any() || planned.waiting > 0, Ordering::Relaxed);
        Ok((all, admitted))
    }
}

impl Step for Planner {
    const NAME: &'static str = "planner";
    const LIMIT: Duration = Duration::from_mins(2);
    type Report = Planned;

    async fn run_once(&self, now: Now) -> Result<Planned, StepError> {
        let mut planned = Planned::default();
        let round = self.round(now, &mut planned).await;
        // What was written before an error is not seen again by the next round.
        planned.tell();
        round.map(|()| planned)
    }

    fn pause(&self, planned: &Planned) -> Pause {
        Pause::Due(planned.sleep)
    }
}

/// Says that a job has paused itself.
fn tell_paused(job: &FailingJob) {
    tracing::warn!(
        job.name = job.name,
        job.failures = job.failures,
        "{} is paused: {} executions in a row failed",
        job.name,
        job.failures
    );
}

/// Whether the error is the fault of some row and not of the database or of this program's plans.
const fn is_about_a_row(error: &StepError) -> bool {
    matches!(
        error,
        StepError::Store(
            StoreError::Data(_) | StoreError::Statement(_) | StoreError::Inconsistent { .. }
        )
    )
}
