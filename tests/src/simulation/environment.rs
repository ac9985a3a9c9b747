//! What comes from outside: the broker's faults, people, other programs.

use chrono::{DateTime, Utc};
use sexton_model::id::ExecutionId;
use sexton_model::state::{Cause, State};
use sexton_store::backfill::{self, Backfill, BackfillError};
use sexton_store::operator::{self, AuditContext, OperatorError};
use sexton_store::trigger::{Trigger, trigger};

use super::broker::{Message, pick};
use super::case::{ACTOR, Simulation};
use super::invariants::invariant;
use super::op::{Cut, Op, Queue};
use super::rows::Row;
use super::stop::Stop;
use super::writes::WORK;

/// The most firings that somebody backfills.
const MAX_BACKFILL_FIRINGS: u8 = 8;

pub(super) const BY: AuditContext<'static> =
    AuditContext { actor: "somebody", reason: Some("a reason") };

impl Simulation<'_> {
    /// What befalls messages, without the database.
    pub(super) fn apply_message_fault(&mut self, op: Op) {
        match op {
            Op::Copy { queue, message } => {
                if let Some(copy) = self.message(queue, message).cloned() {
                    self.put(queue, copy);
                }
            }
            Op::Strip { queue, message } => {
                if let Some(message) = self.message(queue, message) {
                    message.strip();
                }
            }
            Op::Lose { queue, message } => {
                self.remove(queue, message);
            }
            Op::Wipe => {
                self.broker = super::broker::Broker::default();
                for slot in &mut self.slots {
                    slot.delivery = None;
                }
                if let Some(pass) = &mut self.sweep {
                    pass.hand = None;
                }
                self.ledger.excused.extend(self.rows.keys());
                self.disturb_sweep();
            }
            Op::Early { message } => {
                if let Some(message) = self.remove(Queue::DelayQueues, message) {
                    self.broker.main.push(message);
                }
            }
            Op::Park { message } => {
                if let Some(mut message) = self.remove(Queue::Main, message) {
                    message.note = Some("delivery_limit");
                    self.broker.failed.push(message);
                }
            }
            Op::Foreign { key } => {
                let key = format!("theirs-{key}");
                self.broker.main.push(Message::foreign(&key, WORK));
            }
            Op::MoveBack { message } => {
                if let Some(message) = self.remove(Queue::Failed, message) {
                    self.release(&message);
                }
            }
            Op::CopyBack { message } => {
                if let Some(copy) = self.message(Queue::Failed, message).cloned() {
                    self.release(&copy);
                }
            }
            Op::MoveAway { message } => {
                if let Some(message) = self.remove(Queue::Main, message) {
                    self.ledger.misplaced.extend(self.ticket_of(&message));
                    self.broker.failed.push(message.copied());
                }
            }
            _ => {}
        }
    }

    fn release(&mut self, message: &Message) {
        self.ledger.released.extend(message.ticket());
        self.broker.main.push(message.copied());
    }

    fn message(&mut self, queue: Queue, index: u8) -> Option<&mut Message> {
        match queue {
            Queue::Main => {
                let index = pick(index, self.broker.main.len())?;
                self.broker.main.get_mut(index)
            }
            Queue::DelayQueues => {
                let index = pick(index, self.broker.delay_queues.len())?;
                self.broker.delay_queues.get_mut(index).map(|(_, message)| message)
            }
            Queue::Failed => {
                let index = pick(index, self.broker.failed.len())?;
                self.broker.failed.get_mut(index)
            }
        }
    }

    fn put(&mut self, queue: Queue, message: Message) {
        match queue {
            Queue::Main => self.broker.main.push(message),
            Queue::DelayQueues => self.broker.delay_queues.push((self.now, message)),
            Queue::Failed => self.broker.failed.push(message),
        }
    }

    fn remove(&mut self, queue: Queue, index: u8) -> Option<Message> {
        let message = match queue {
            Queue::Main => {
                pick(index, self.broker.main.len()).map(|at| self.broker.main.remove(at))
            }
            Queue::DelayQueues => pick(index, self.broker.delay_queues.len())
                .map(|at| self.broker.delay_queues.remove(at).1),
            Queue::Failed => {
                pick(index, self.broker.failed.len()).map(|at| self.broker.failed.remove(at))
            }
        }?;
        if queue == Queue::Failed {
            self.disturb_sweep();
        }
        self.excuse(&message);
        Some(message)
    }

    /// Its ticket may be nowhere now.
    fn excuse(&mut self, message: &Message) {
        let id = self.ticket_of(message).map(|(id, _)| id);
        self.ledger.excused.extend(id);
    }

    /// Messages went from before a pass of the sweep: it may reach copies of its own, and remove one
    /// as a second copy; the next pass marks it unpublished.
    fn disturb_sweep(&mut self) {
        if let Some(pass) = &mut self.sweep {
            pass.disturbed = true;
        }
    }

    /// Somebody triggers a job of his choice, with one of a few keys.
    pub(super) async fn trigger(&mut self, key: u8, cut: Cut) -> Result<(), Stop> {
        if cut == Cut::Before {
            return Ok(());
        }
        let own_key = format!("mine-{key}");
        let id = sexton_model::id::ExecutionId::new(self.fresh());
        let name = self.jobs[usize::from(key) % self.jobs.len()].name;
        let request = Trigger {
            job: name,
            key: Some(&own_key),
            params: serde_json::Map::new(),
            id,
            claimed_by: ACTOR,
        };
        let triggered = trigger(self.writes(), request, Some(BY), Some(self.now)).await?;
        invariant!(triggered.created == (triggered.id == id), "a trigger that is not what it says");
        if triggered.created {
            self.ledger.record_action(id);
        }
        Ok(())
    }

    /// Somebody wants the last firings of a job to have run, or the oldest that retention has removed.
    /// What has an execution is left alone, and what may have been removed is refused: its key would be
    /// new again.
    pub(super) async fn backfill(&mut self, job: u8, firings: u8, cut: Cut) -> Result<(), Stop> {
        let Some(index) = pick(job, self.jobs.len()).filter(|_| cut != Cut::Before) else {
            return Ok(());
        };
        let (id, name, now) = (self.jobs[index].id, self.jobs[index].name, self.now);
        let (first, period) = (self.jobs[index].first, self.jobs[index].period);
        let (Some(first), Some(period)) = (first, period) else { return Ok(()) };
        let length = period * i32::from(firings / 2 % MAX_BACKFILL_FIRINGS + 1);
        // What retention has removed is where a backfill could do harm.
        let instant = |key: &str| key.split_once('-')?.1.parse::<DateTime<Utc>>().ok();
        let removed = self.ledger.removed_keys.iter().filter(|(job, _)| *job == id);
        let oldest = removed.filter_map(|(_, key)| instant(key)).min().unwrap_or(first);
        let (from, to) = if firings.is_multiple_of(2) {
            (now - length, now)
        } else {
            (oldest, now.min(oldest + length))
        };
        if to < from {
            return Ok(());
        }
        let request = Backfill {
            approved: None,
            job: name,
            from,
            to,
            rate: (!firings.is_multiple_of(3))
                .then(|| "10/m".parse())
                .transpose()
                .unwrap_or_default(),
            allow_overlap: true,
            claimed_by: ACTOR,
            dry_run: false,
        };
        let store = self.writes();
        self.backfills += 1;
        let fresh = || ExecutionId::new(self.fresh());
        match backfill::create_batch(store, request, None, fresh, BY, Some(now)).await {
            Ok(batch) => {
                for firing in batch.firings.iter().filter(|firing| firing.due_at.is_some()) {
                    let key = (id, firing.execution_key.clone());
                    let removed = self.ledger.removed_keys.contains(&key);
                    invariant!(!removed, "{name}: {} is backfilled again", firing.execution_key);
                }
                invariant!(batch.next.is_none(), "a small backfill is not finished");
            }
            Err(BackfillError::Pruned(_)) => self.rolled_back().await?,
            Err(error) => return Err(Stop::broken(format!("{name} is not backfilled: {error}"))),
        }
        Ok(())
    }

    /// An operator does something to one of the executions that he sees in such a state. He saw it
    /// some time ago: `stale` presents the attempt before.
    pub(super) async fn operate(&mut self, op: Op) -> Result<(), Stop> {
        let (index, cause, from): (u8, Cause, &[State]) = match op {
            Op::Requeue { row, .. } => (row, Cause::Requeue, &[State::Failed]),
            Op::Discard { row } => (row, Cause::Discard, &[State::Failed]),
            Op::Restore { row } => (row, Cause::Restore, &[State::Discarded]),
            Op::Cancel { row } => {
                (row, Cause::Cancel, &[State::Pending, State::Running, State::Retrying])
            }
            _ => return Ok(()),
        };
        let such: Vec<&Row> = self.rows.values().filter(|row| from.contains(&row.state)).collect();
        let Some(row) = pick(index, such.len()).map(|index| such[index].clone()) else {
            return Ok(());
        };
        let (store, id, now) = (self.writes(), row.id, Some(self.now));
        let stale = matches!(op, Op::Requeue { stale: true, .. }) && row.attempt.get() > 1;
        let seen = if stale { sexton_model::id::AttemptNumber::FIRST } else { row.attempt };
        self.notes.person = (!stale).then_some((id, cause));
        let done = match cause {
            Cause::Requeue => operator::requeue(store, id, seen, BY, now).await,
            Cause::Discard => operator::discard(store, id, BY, now).await,
            Cause::Restore => operator::restore(store, id, BY, now).await,
            _ => operator::cancel(store, id, BY, now).await.map(|_| ()),
        };
        match done {
            Ok(()) => {
                invariant!(!stale, "requeued by who saw an earlier failure: {}", row.name());
                self.ledger.record_action(id);
            }
            Err(OperatorError::Conflict { .. }) if stale => self.rolled_back().await?,
            Err(OperatorError::CancelAlreadyRequested(_)) if row.cancel_requested => {
                self.rolled_back().await?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
