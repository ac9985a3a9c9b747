//! A platform whose processes are stepped one effect at a time: real rows, real decisions, a clock
//! that is moved by hand, and a broker that does what it likes.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::id::{AttemptNumber, ExecutionId, ProcessId};
use sexton_model::job::{Overlap, RetryOverrides};
use sexton_model::pool::PoolName;
use sexton_model::retry::RetryPolicy;
use sexton_store::Store;
use sqlx::AssertSqlSafe;
use uuid::{Builder, Uuid};

use super::broker::{Broker, Message};
use super::bulks::{self, Bulks};
use super::invariants::{Checker, invariant};
use super::jobs::{self, Job};
use super::ledger::{Ledger, Notes};
use super::op::Op;
use super::rows::{self, Row, Rows};
use super::schedulers::Schedulers;
use super::slots::{SLOTS, Slot, WORKERS, Worker};
use super::stop::Stop;
use super::sweep::Pass;
use super::writes::CRASHES;

/// Who claims and opens.
pub(super) const ACTOR: &str = "simulation:1";
/// A class of error that no retry helps.
pub(super) const HOPELESS: &str = "exit_3";
/// Where a delay lies between its bounds: in the middle, so that nothing varies.
pub(super) const JITTER_FRACTION: f64 = 0.5;
/// When it begins. Years from any database's own clock: a statement that asked that one instead of
/// the given instant would be noticed at once.
const BEGIN_S: i64 = 2_000_000_000;

pub(super) fn began() -> DateTime<Utc> {
    DateTime::from_timestamp(BEGIN_S, 0).unwrap_or_default()
}

/// The pool of every job.
pub(super) fn pool() -> PoolName {
    PoolName::default_pool()
}

/// How questions are tried again, as `shared/store/src/bulk/question.rs` says of their jobs.
fn of_question() -> RetryOverrides {
    let delay = Some(Duration::from_secs(2));
    RetryOverrides {
        max_retries: Some(2),
        max_timeouts: Some(1),
        delay,
        max_delay: delay,
        ..RetryOverrides::default()
    }
}

/// What the processes do that the simulation plays itself. Taking one away shows that the promises
/// can be broken.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that is played")]
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// Workers kill their tasks before the lease is over.
    pub own_clock: bool,
    /// A worker whose open was answered late renews before it starts the task.
    pub renewal_first: bool,
    /// The rescuer judges a lease by what it has seen, and not by the database's clock.
    pub observes: bool,
    /// A pass of the sweep marks unseen messages unpublished.
    pub sweep_republishes: bool,
    /// Schedulers let executions go that wait for their job.
    pub admits: bool,
}

impl Parts {
    /// All of it.
    pub const ALL: Self = Self {
        own_clock: true,
        renewal_first: true,
        observes: true,
        sweep_republishes: true,
        admits: true,
    };
}

/// The platform.
#[derive(Debug)]
pub(super) struct Simulation<'a> {
    pub(super) store: &'a Store,
    pub(super) parts: Parts,
    /// The database's clock.
    pub(super) now: DateTime<Utc>,
    /// What the same clock would say if nobody had ever set it: the time that has really passed.
    pub(super) steady: DateTime<Utc>,
    pub(super) jobs: Vec<Job>,
    pub(super) defaults: RetryPolicy,
    pub(super) broker: Broker,
    pub(super) schedulers: Schedulers,
    pub(super) sweep: Option<Pass>,
    pub(super) workers: Vec<Worker>,
    pub(super) slots: Vec<Slot>,
    pub(super) rows: Rows,
    pub(super) bulks: Bulks,
    /// Whether the operation has written to the database.
    pub(super) wrote: bool,
    pub(super) ledger: Ledger,
    pub(super) notes: Notes,
    /// Ids drawn so far, and what tells them from those of other runs.
    drawn: u64,
    salt: u16,
    applied: u64,
    /// How many executions were skipped because they came too late.
    pub(super) skipped: u64,
    /// How many firings were claimed to wait for their job.
    pub(super) waited: u64,
    /// How many executions were replaced while they ran.
    pub(super) replaced: u64,
    /// How often a cursor was set back.
    pub(super) set_back: u64,
    /// How many backfills were done.
    pub(super) backfills: u64,
    /// How often the clock jumped, and what was set aside was decided.
    pub(super) jumps: u64,
    pub(super) released: u64,
}

impl<'a> Simulation<'a> {
    /// Begins in a database that is this simulation's alone: what was there is deleted.
    ///
    /// # Errors
    ///
    /// [`Stop::Server`].
    pub(super) async fn begin(store: &'a Store, parts: Parts, salt: u16) -> Result<Self, Stop> {
        let mut simulation = Self {
            store,
            parts,
            now: began(),
            steady: began(),
            jobs: Vec::new(),
            defaults: RetryPolicy {
                jitter: 0.0,
                max_timeouts: 2,
                max_crashes: 3,
                max_snoozes: 2,
                permanent: vec![HOPELESS.to_owned()],
                ..RetryPolicy::default()
            },
            broker: Broker::default(),
            schedulers: Schedulers::default(),
            sweep: None,
            workers: Vec::new(),
            slots: (0..WORKERS * SLOTS).map(|_| Slot::default()).collect(),
            rows: Rows::new(),
            bulks: Bulks::new(),
            wrote: false,
            ledger: Ledger::default(),
            notes: Notes::default(),
            drawn: 0,
            salt,
            applied: 0,
            skipped: 0,
            waited: 0,
            replaced: 0,
            set_back: 0,
            backfills: 0,
            jumps: 0,
            released: 0,
        };
        for _ in 0..WORKERS {
            let process = ProcessId::new(simulation.fresh());
            simulation.workers.push(Worker { process, dead: Vec::new() });
        }
        simulation.jobs = jobs::insert(&mut simulation).await?;
        Ok(simulation)
    }

    /// An id of now: version 7, ordered by the instant and then by the drawing.
    pub(super) fn fresh(&mut self) -> Uuid {
        self.drawn += 1;
        let mut rest = [0; 10];
        rest[..8].copy_from_slice(&self.drawn.to_be_bytes());
        // Two bits of the ninth byte's field are the variant's; the counter is far from them.
        rest[8..].copy_from_slice(&self.salt.to_be_bytes());
        let millis = self.now.timestamp_millis().unsigned_abs();
        Builder::from_unix_timestamp_millis(millis, &rest).into_uuid()
    }

    /// Does one thing, and checks everything.
    ///
    /// # Errors
    ///
    /// [`Stop::Broken`]: a promise does not hold after it.
    pub(super) async fn apply(&mut self, op: Op) -> Result<(), Stop> {
        self.applied += 1;
        self.notes = Notes::default();
        self.act(op).await?;
        self.observe().await
    }

    /// The database, to be written to: the rows are read again after it.
    pub(super) fn writes(&mut self) -> &'a Store {
        self.wrote = true;
        self.store
    }

    /// Everything that an operation can change, to be compared.
    pub(super) fn sight(&self) -> String {
        let held = (&self.schedulers, &self.sweep, &self.workers, &self.slots);
        let overlaps: Vec<Overlap> = self.jobs.iter().map(|job| job.overlap).collect();
        let counts = (self.set_back, self.jumps, self.released);
        format!("{:?}", (self.now, counts, overlaps, &self.broker, held, &self.rows, &self.bulks))
    }

    /// How many operations it has been through.
    pub(super) fn applied(&self) -> u64 {
        self.applied
    }

    /// Gives back what it holds.
    pub(super) async fn leave(mut self) -> Result<(), Stop> {
        self.stop_sweep().await
    }

    async fn act(&mut self, op: Op) -> Result<(), Stop> {
        match op {
            Op::Wait { ms } => {
                self.now += Duration::from_millis(ms);
                self.steady += Duration::from_millis(ms);
                self.broker.ripen(self.now);
                self.kill_by_own_clock();
            }
            Op::SetClock { ms } => {
                self.now += Duration::from_millis(ms);
                self.broker.ripen(self.now);
            }
            Op::Plan { cut } => self.plan(cut).await?,
            Op::Admit { cut } => self.admit(cut).await?,
            Op::Overlap { job, policy } => self.set_overlap(job, policy).await?,
            Op::SetBack { job, firings } => self.set_back(job, firings).await?,
            Op::Jump { back } => self.jump(back).await?,
            Op::Release { discard, cut } => self.decide(discard, cut).await?,
            Op::Relay { limit, cut } => self.relay(limit, cut).await?,
            Op::Publish { ticket, cut } => self.publish(ticket, cut).await?,
            Op::Mark { cut } => self.mark(cut).await?,
            Op::SchedulerDies => self.schedulers = Schedulers::default(),
            Op::FindLost => self.find_lost().await?,
            Op::EndLost { cut } => self.end_found(cut).await?,
            Op::Reconcile { wrong, cut } => self.reconcile(wrong, cut).await?,
            Op::Sweep { cut } => self.sweep(cut).await?,
            Op::SweepDies => self.stop_sweep().await?,
            Op::Prune => self.prune().await?,
            Op::Ask { worker, cut } => self.ask(worker, cut).await?,
            Op::Renew { worker, cut } => self.renew(worker, cut).await?,
            Op::Write { worker, cut } => self.write(worker, cut).await?,
            Op::Settle { worker, cut } => self.settle(worker, cut).await?,
            Op::MarkSent { worker, cut } => self.mark_sent(worker, cut).await?,
            Op::AcquireInstanceLock { worker } => self.acquire_instance_lock(worker).await?,
            Op::Trigger { key, cut } => self.trigger(key, cut).await?,
            Op::Backfill { job, firings, cut } => self.backfill(job, firings, cut).await?,
            Op::Requeue { .. } | Op::Discard { .. } | Op::Restore { .. } | Op::Cancel { .. } => {
                self.operate(op).await?;
            }
            Op::Prepare { .. }
            | Op::Question { .. }
            | Op::Carry { .. }
            | Op::Bulk { .. }
            | Op::StopBulk { .. }
            | Op::ResumeBulk { .. }
            | Op::Say { .. }
            | Op::Edit { .. } => self.apply_bulk_op(op).await?,
            Op::Deliver { .. }
            | Op::End { .. }
            | Op::Answer { .. }
            | Op::Send { .. }
            | Op::Acknowledge { .. }
            | Op::LetGo { .. }
            | Op::GiveBack { .. }
            | Op::Disconnect { .. }
            | Op::WorkerDies { .. } => self.slot(op)?,
            Op::Copy { .. }
            | Op::Lose { .. }
            | Op::Wipe
            | Op::Early { .. }
            | Op::Park { .. }
            | Op::Strip { .. }
            | Op::Foreign { .. }
            | Op::MoveBack { .. }
            | Op::CopyBack { .. }
            | Op::MoveAway { .. } => self.apply_message_fault(op),
        }
        Ok(())
    }

    /// Reads the rows and judges what has changed.
    async fn observe(&mut self) -> Result<(), Stop> {
        if !std::mem::take(&mut self.wrote) {
            self.no_two_run_at_once()?;
            return self.published_is_somewhere();
        }
        let after = rows::read(self.store.pool()).await?;
        // Most simulations have none.
        let bulks = if self.ledger.bulks.is_any() {
            bulks::read(self.store.pool()).await?
        } else {
            Bulks::new()
        };
        let (jobs, defaults) = (&self.jobs, &self.defaults);
        let policy = |row: &Row| {
            let job = jobs.iter().find(|job| job.id == row.job);
            let policy = match job {
                Some(job) => defaults.with(&job.retry),
                None if row.asks_about.is_some() => defaults.with(&of_question()),
                None => defaults.clone(),
            };
            // As the worker wrote it down at the open; it holds for every process that ends the attempt.
            RetryPolicy { max_crashes: CRASHES, ..policy }
        };
        let stale_at = |row: &Row| {
            let after = jobs.iter().find(|job| job.id == row.job)?.stale_after?;
            // Of firings only. A trigger's key is somebody's own, a foreign task's a message id.
            // What was backfilled is wanted, however late.
            let fired = !row.is_backfilled
                && (row.execution_key.starts_with("every-")
                    || row.execution_key.starts_with("cron-"));
            fired.then_some(row.scheduled_for + after)
        };
        let has_verify_task =
            |row: &Row| jobs.iter().any(|job| job.id == row.job && job.has_verify_task);
        let mut judge = Checker {
            ledger: &mut self.ledger,
            notes: &mut self.notes,
            now: self.now,
            steady: self.steady,
            began: began(),
            policy: &policy,
            stale_at: &stale_at,
            has_verify_task: &has_verify_task,
        };
        judge.notes.by_bulk = judge.moved_by_bulks(&self.bulks, &bulks);
        judge.bulks((&self.rows, &after), (&self.bulks, &bulks))?;
        judge.compare(&self.rows, &after)?;
        for job in &self.jobs {
            judge.overlaps(job.id, job.overlap, &self.rows, &after)?;
        }
        (self.rows, self.bulks) = (after, bulks);
        self.no_two_run_at_once()?;
        self.published_is_somewhere()
    }

    /// The ticket that a message is; of a foreign task the first, once it is taken over.
    pub(super) fn ticket_of(&self, message: &Message) -> Option<(ExecutionId, AttemptNumber)> {
        message.ticket().or_else(|| {
            let key = message.name.as_ref()?;
            self.ledger.foreign.get(key).map(|id| (*id, AttemptNumber::FIRST))
        })
    }

    /// A ticket that is marked as published is in a queue or in somebody's hand, unless it was taken
    /// from there.
    fn published_is_somewhere(&mut self) -> Result<(), Stop> {
        let swept = self.sweep.iter().filter_map(|pass| pass.hand.as_ref());
        let swept = swept.filter_map(|(message, _)| self.ticket_of(message));
        let there: HashSet<(ExecutionId, AttemptNumber)> = self
            .broker
            .messages()
            .filter_map(|message| self.ticket_of(message))
            .chain(self.in_hand())
            .chain(swept)
            .collect();
        for row in self.rows.values() {
            let is_there = there.contains(&(row.id, row.attempt));
            if !row.is_published() {
                continue;
            }
            let excused = self.ledger.excused.contains(&row.id);
            invariant!(is_there || excused, "its ticket is nowhere: {}", row.name());
        }
        // What is there again, or not to be there, is excused no longer.
        let rows = &self.rows;
        self.ledger
            .excused
            .retain(|id| rows.get(id).is_some_and(|row| !there.contains(&(row.id, row.attempt))));
        Ok(())
    }

    /// A transaction that was dropped is rolled back a moment later. Waits for that moment, so that
    /// the next statement finds its locks gone, in every run alike.
    pub(super) async fn rolled_back(&self) -> Result<(), Stop> {
        for table in ["jobs", "executions", "bulks"] {
            let wait = format!(
                "SELECT count(*) FROM (SELECT id FROM sexton.{table} FOR UPDATE) AS all_of_it"
            );
            sqlx::query(AssertSqlSafe(wait)).execute(self.store.pool()).await?;
        }
        Ok(())
    }
}
