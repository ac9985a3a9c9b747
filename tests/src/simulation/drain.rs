//! Faults and people stop, everybody else goes on: every execution must come to its end, in a bounded
//! number of rounds, and the failed queue must hold exactly what is failed.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sexton_model::cron::Dst;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::plan::Timetable;
use sexton_model::state::State;
use sexton_model::zone::Zone;
use uuid::Uuid;

use super::broker::Message;
use super::case::Simulation;
use super::invariants::invariant;
use super::op::{Cut, End, Op, ScriptedAnswer};
use super::slots::{SLOTS, Step, WORKERS};
use super::stop::Stop;

/// How long to wait before each round, in milliseconds: retries and leases first, then the
/// reconciler's patience of five minutes to an hour.
const DRAIN_ROUNDS: [(usize, u64); 4] = [(8, 3_000), (12, 30_000), (30, 310_000), (30, 3_610_000)];
/// Effects of a slot, from its ticket's delivery to the acknowledgement, and one in reserve.
const MAX_SLOT_EFFECTS: usize = 9;

impl Simulation<'_> {
    /// Runs everything to its end and checks that it is one.
    ///
    /// # Errors
    ///
    /// [`Stop::Broken`]: it is none, or a promise broke on the way.
    pub(super) async fn run_to_the_end(&mut self) -> Result<(), Stop> {
        self.apply(Op::SweepDies).await?;
        self.apply(Op::Release { discard: false, cut: Cut::No }).await?;
        self.resume_some().await?;
        for (rounds, ms) in DRAIN_ROUNDS {
            for round in 0..rounds {
                self.round(round as u8).await?;
                if self.unfinished().is_none() {
                    self.end_is_right().await?;
                    return self.bulks_are_over().await;
                }
                self.apply(Op::Wait { ms }).await?;
            }
        }
        let rest = self.unfinished().unwrap_or_default();
        Err(Stop::broken(format!("it does not come to its end without further faults: {rest}")))
    }

    /// Each process does all that it can.
    async fn round(&mut self, round: u8) -> Result<(), Stop> {
        let cut = Cut::No;
        for worker in 0..WORKERS as u8 {
            self.apply(Op::AcquireInstanceLock { worker }).await?;
        }
        self.apply(Op::FindLost).await?;
        self.apply(Op::EndLost { cut }).await?;
        self.apply(Op::Reconcile { wrong: false, cut }).await?;
        self.carry_on().await?;
        self.apply(Op::Admit { cut }).await?;
        self.apply(Op::Relay { limit: 100, cut }).await?;
        while !self.schedulers.outbox.is_empty() {
            self.apply(Op::Publish { ticket: 0, cut }).await?;
            self.apply(Op::Mark { cut }).await?;
        }
        while !self.broker.main.is_empty() || self.slots.iter().any(is_busy) {
            // From one round to the next a ticket comes to another slot.
            for slot in 0..(WORKERS * SLOTS) as u8 {
                self.apply(Op::Deliver { slot: slot + round, message: 0 }).await?;
            }
            self.work().await?;
        }
        // A pass, and the messages that it marks unpublished.
        self.apply(Op::Sweep { cut }).await?;
        while self.sweep.is_some() {
            self.apply(Op::Sweep { cut }).await?;
        }
        Ok(())
    }

    /// Every slot comes to its acknowledgement; tasks end well.
    async fn work(&mut self) -> Result<(), Stop> {
        let cut = Cut::No;
        for _ in 0..MAX_SLOT_EFFECTS {
            for worker in 0..WORKERS as u8 {
                if !Self::slots_of(worker).any(|slot| is_busy(&self.slots[slot])) {
                    continue;
                }
                self.apply(Op::Ask { worker, cut }).await?;
                self.apply(Op::Renew { worker, cut }).await?;
                self.apply(Op::Answer { slot: 0, reply: ScriptedAnswer::No }).await?;
                self.apply(Op::End { slot: 0, end: End::Succeeds }).await?;
                self.apply(Op::Settle { worker, cut }).await?;
                self.apply(Op::Send { slot: 0, cut }).await?;
                self.apply(Op::MarkSent { worker, cut }).await?;
                self.apply(Op::Acknowledge { slot: 0 }).await?;
            }
        }
        Ok(())
    }

    /// What has not come to its end, for people.
    fn unfinished(&self) -> Option<String> {
        let ended =
            |state: State| state.is_final() || matches!(state, State::Failed | State::Discarded);
        if let Some(row) = self.rows.values().find(|row| !ended(row.state)) {
            return Some(row.name());
        }
        if !self.broker.main.is_empty() || !self.broker.delay_queues.is_empty() {
            return Some("a ticket is left in a queue".to_owned());
        }
        if let Some(bulk) = self.unfinished_bulk() {
            return Some(bulk);
        }
        let mut parked: BTreeMap<(ExecutionId, AttemptNumber), usize> = BTreeMap::new();
        for (id, attempt) in self.broker.failed.iter().filter_map(Message::ticket) {
            // What no row knows is nobody's to remove. Nor is a foreign task's own message.
            if self.rows.contains_key(&id) {
                *parked.entry((id, attempt)).or_default() += 1;
            }
        }
        for row in self.rows.values().filter(|row| row.state == State::Failed) {
            let messages = parked.remove(&(row.id, row.attempt)).unwrap_or_default();
            if messages != 1 || !row.is_published() {
                return Some(format!("{messages} messages are parked of {}", row.name()));
            }
        }
        let (id, attempt) = parked.keys().next()?;
        Some(format!("ticket {attempt} of {id} is parked, which is not failed at it"))
    }

    /// What succeeded has run, and every firing has its disposition.
    async fn end_is_right(&self) -> Result<(), Stop> {
        for row in self.rows.values().filter(|row| row.state == State::Succeeded) {
            let ran =
                self.ledger.has_succeeded(row.id) || self.ledger.bulks.resolved.contains(&row.id);
            invariant!(ran, "it succeeded, but no task of it ended well: {}", row.name());
        }
        for job in &self.jobs {
            let (Some(first), Some(_)) = (job.first, job.period) else { continue };
            let gaps: Vec<(DateTime<Utc>, DateTime<Utc>)> = sqlx::query_as(
                "SELECT first_firing, last_firing FROM sexton.gaps WHERE job_id = $1",
            )
            .bind(job.id)
            .fetch_all(self.store.pool())
            .await?;
            let cursor: DateTime<Utc> =
                sqlx::query_scalar("SELECT next_fire_at FROM sexton.jobs WHERE id = $1")
                    .bind(job.id)
                    .fetch_one(self.store.pool())
                    .await?;
            let timetable =
                Timetable::new(job.name, &job.schedule, Zone::UTC, Dst::default(), None)
                    .map_err(|error| Stop::broken(format!("{}: {error}", job.name)))?;
            let mut firing = Some(first);
            while let Some(at) = firing.filter(|at| *at < cursor) {
                let counted =
                    gaps.iter().filter(|(first, last)| (*first..=*last).contains(&at)).count();
                let claimed = usize::from(self.was_claimed(job.id, &timetable, at));
                invariant!(counted + claimed > 0, "{at}: no disposition");
                // What was missed can be backfilled, and its gap stays. And a cursor that was set back
                // comes to the same firings again.
                let most = if self.backfills > 0 { 2 } else { 1 };
                let once = self.set_back > 0 || (counted <= 1 && counted + claimed <= most);
                invariant!(once, "{at}: in {counted} gaps, and claimed {claimed} times");
                firing = timetable.next_after(at);
            }
        }
        Ok(())
    }

    /// Whether the firing has a row, or had one that retention removed.
    fn was_claimed(&self, job: Uuid, timetable: &Timetable, at: DateTime<Utc>) -> bool {
        let key = timetable.key_of(at).unwrap_or_default();
        self.ledger.keys.contains_key(&(job, key.clone()))
            || self.ledger.removed_keys.contains(&(job, key))
    }
}

fn is_busy(slot: &super::slots::Slot) -> bool {
    !matches!(slot.step, Step::Idle)
}
