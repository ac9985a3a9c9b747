//! The schedulers' loops over the rows, as in `scheduler/src`, one effect at a time.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sexton_model::id::ExecutionId;
use sexton_model::lease::{LeaseObserver, is_expired};
use sexton_model::plan::{Cursor, Disposition, PlanInput, plan};
use sexton_store::firing::{Claim, ClaimTransaction, CursorUpdate};
use sexton_store::gaps::GapRow;
use sexton_store::lost_attempts::{self, LossGrounds, LostAttempt};
use sexton_store::reconcile;
use sexton_store::relay::{self, PostponedTicket};
use sexton_store::retention::{RetentionPolicy, RetentionTarget};
use sexton_store::running_attempts::{self, LeaseRenewal, RunningAttempt};
use sexton_store::tickets::UnpublishedTicket;

use super::broker::pick;
use super::case::{ACTOR, Simulation, began};
use super::invariants::invariant;
use super::op::Cut;
use super::stop::Stop;
use crate::relaying::take_due;
use crate::retention::pass;

/// How far the clock may jump before catch-up is held: farther than time passes in one operation.
const HOLD_AFTER: Duration = Duration::from_hours(2);
/// How far back a hand sets a cursor.
const MAX_SET_BACK_FIRINGS: u8 = 3;
/// For how long retention keeps what has ended, in days.
pub(super) const RETENTION_DAYS: i32 = 30;
const RETENTION: RetentionPolicy = RetentionPolicy { days: RETENTION_DAYS, audit_days: None };
/// What of the ledger goes, besides what nothing is promised of here.
const PRUNED: [RetentionTarget; 4] = [
    RetentionTarget::Executions,
    RetentionTarget::OwnKeys,
    RetentionTarget::Contents,
    RetentionTarget::Bulks,
];

/// Any instant: only the differences matter.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What the schedulers remember.
#[derive(Debug, Default)]
pub(super) struct Schedulers {
    /// Tickets that they have claimed or taken; `true`: published, not marked.
    pub(super) outbox: Vec<(UnpublishedTicket, bool)>,
    /// What the rescuer has seen of the open attempts.
    observed: LeaseObserver<ExecutionId, LeaseRenewal>,
    /// Those that it has seen unrenewed for a lease, and what is known of them.
    silent: Vec<RunningAttempt>,
    overdue: Vec<LostAttempt>,
}

impl Simulation<'_> {
    pub(super) async fn plan(&mut self, cut: Cut) -> Result<(), Stop> {
        let mut transaction = ClaimTransaction::begin(self.store, Some(self.now)).await?;
        let look = transaction.read_clock(Some(HOLD_AFTER), ACTOR).await?;
        let due = transaction.due_jobs(10, &[]).await?;
        invariant!(due.unreadable.is_empty(), "due jobs cannot be read: {:?}", due.unreadable);
        let (mut claims, mut of_jobs) = (Vec::new(), Vec::new());
        let (mut cursors, mut gaps, mut replacing) = (Vec::new(), Vec::new(), Vec::new());
        let mut held = Vec::new();
        for job in &due.jobs {
            let timetable =
                job.timetable().map_err(|error| Stop::broken(format!("{}: {error}", job.name)))?;
            let due = PlanInput {
                timetable: &timetable,
                overlap: job.overlap,
                misfire: job.misfire,
                next_fire_at: job.next_fire_at,
                under_way: job.under_way,
                held: look.held,
            };
            let plan = plan(&due, job.now);
            for firing in plan.firings {
                let id = ExecutionId::new(self.fresh());
                let skipped = matches!(firing.disposition, Disposition::Skipped(_));
                if !skipped && job.overlap.replaces(job.under_way) {
                    replacing.push((job.id, id));
                }
                claims.push(Claim::of(job, firing, id));
                of_jobs.push(job);
            }
            gaps.extend(plan.gaps.iter().map(|gap| GapRow::of(job.id, gap)));
            held.extend(plan.held.map(|gap| (job.id, gap)));
            let next = plan.next_fire_at.map(|nominal| Cursor::on(&timetable, nominal));
            cursors.push(CursorUpdate { job: job.id, next, runs: 0 });
        }
        let inserted = transaction.insert(&mut claims, ACTOR).await?;
        replacing.retain(|(_, id)| inserted.contains(id));
        self.replaced += transaction.replace(&replacing).await?.running;
        self.waited += claims.iter().filter(|claim| claim.waits.is_some()).count() as u64;
        let moved = transaction.advance(&cursors).await?;
        invariant!(moved == cursors.len() as u64, "{moved} cursors moved of {}", cursors.len());
        transaction.record_gaps(&gaps).await?;
        transaction.hold_firings(&held).await?;
        if cut == Cut::Before {
            return Ok(transaction.rollback().await?);
        }
        self.writes();
        self.notes.planned = true;
        transaction.commit().await?;
        if cut == Cut::No {
            let runs = claims
                .iter()
                .zip(of_jobs)
                .filter(|(claim, _)| claim.runs_now() && inserted.contains(&claim.id));
            let tickets = runs.map(|(claim, job)| (claim.clone().into_ticket(job), false));
            self.schedulers.outbox.extend(tickets);
        }
        Ok(())
    }

    /// As somebody would with psql. The cursor stays on a firing.
    pub(super) async fn set_back(&mut self, job: u8, firings: u8) -> Result<(), Stop> {
        let Some(index) = pick(job, self.jobs.len()) else { return Ok(()) };
        let job = &self.jobs[index];
        let Some(period) = job.period else { return Ok(()) };
        let done = sqlx::query(
            "UPDATE sexton.jobs SET next_fire_at = greatest(next_fire_at - $2 * interval '1 second', $3)
             WHERE id = $1 AND next_fire_at > $3",
        )
        .bind(job.id)
        .bind((period * i32::from(firings % MAX_SET_BACK_FIRINGS + 1)).num_seconds() as f64)
        .bind(job.first)
        .execute(self.store.pool())
        .await?;
        self.set_back += done.rows_affected();
        Ok(())
    }

    pub(super) async fn relay(&mut self, limit: u8, cut: Cut) -> Result<(), Stop> {
        if cut == Cut::Before {
            return Ok(());
        }
        let taken = take_due(self.writes(), usize::from(limit), Some(self.now)).await?;
        invariant!(
            taken.unreadable.is_empty(),
            "unpublished rows cannot be read: {:?}",
            taken.unreadable
        );
        if cut == Cut::No {
            self.schedulers
                .outbox
                .extend(taken.tickets.into_iter().map(|unpublished| (unpublished, false)));
        }
        Ok(())
    }

    /// A refused ticket is postponed; one that was perhaps published is forgotten.
    pub(super) async fn publish(&mut self, ticket: u8, cut: Cut) -> Result<(), Stop> {
        let outbox = &mut self.schedulers.outbox;
        let waiting: Vec<usize> = (0..outbox.len()).filter(|index| !outbox[*index].1).collect();
        let Some(index) = pick(ticket, waiting.len()).map(|index| waiting[index]) else {
            return Ok(());
        };
        if cut != Cut::Before {
            self.broker.publish(&outbox[index].0, self.now);
        }
        if cut == Cut::No {
            outbox[index].1 = true;
            return Ok(());
        }
        let (unpublished, _) = outbox.remove(index);
        if cut == Cut::Before {
            let (execution_id, rev) = (unpublished.ticket.execution_id, unpublished.rev);
            let postponed = PostponedTicket { execution_id, rev, wait_ms: 5_000 };
            relay::postpone(self.writes(), &[postponed], Some(self.now)).await?;
        }
        Ok(())
    }

    pub(super) async fn mark(&mut self, cut: Cut) -> Result<(), Stop> {
        let mut marks = Vec::new();
        self.schedulers.outbox.retain(|(unpublished, published)| {
            if *published {
                marks.push((unpublished.ticket.execution_id, unpublished.rev));
            }
            !published
        });
        if cut != Cut::Before && !marks.is_empty() {
            relay::mark_published(self.writes(), &marks, Some(self.now)).await?;
            self.notes.marked = marks;
        }
        Ok(())
    }

    pub(super) async fn find_lost(&mut self) -> Result<(), Stop> {
        let page = running_attempts::list_page(self.store, None, 100, Some(self.now)).await?;
        let keys: Vec<_> = page.iter().map(|one| (one.execution_id, one.renewed.clone())).collect();
        let read_by = self.instant();
        let since = self.schedulers.observed.observe_page(None, &keys, true, read_by);
        let over = |(one, since): &(RunningAttempt, Instant)| {
            if self.parts.observes {
                is_expired(*since, read_by, one.lease)
            } else {
                one.renewed.lease_until < self.now
            }
        };
        let silent = page.into_iter().zip(since).filter(over).map(|(one, _)| one).collect();
        self.schedulers.silent = silent;
        let grounds = LossGrounds::Unrenewed(&self.schedulers.silent);
        self.schedulers.overdue = lost_attempts::find(self.store, &grounds, 100).await?;
        Ok(())
    }

    /// Also long after they were found: the statement repeats the condition.
    pub(super) async fn end_found(&mut self, cut: Cut) -> Result<(), Stop> {
        let found = std::mem::take(&mut self.schedulers.overdue);
        let silent = std::mem::take(&mut self.schedulers.silent);
        let verdicts = self.verdicts(found);
        if cut != Cut::Before && !verdicts.is_empty() {
            let grounds = LossGrounds::Unrenewed(&silent);
            lost_attempts::settle(self.writes(), &grounds, &verdicts, Some(self.now)).await?;
        }
        Ok(())
    }

    /// By the schedulers' monotonic clock.
    fn instant(&self) -> Instant {
        *BEGUN + (self.steady - began()).to_std().unwrap_or_default()
    }

    pub(super) async fn reconcile(&mut self, wrong: bool, cut: Cut) -> Result<(), Stop> {
        let now = Some(self.now);
        for overdue in reconcile::list_overdue_pools(self.store, now).await? {
            let empty = self.broker.main.is_empty() || wrong;
            if cut != Cut::Before {
                reconcile::mark_unpublished(self.writes(), &overdue.pool, empty, 500, now).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn prune(&mut self) -> Result<(), Stop> {
        self.notes.pruned = true;
        // In batches so small that there are several.
        pass(self.writes(), RETENTION, &PRUNED, 5, Some(self.now)).await?;
        Ok(())
    }
}
