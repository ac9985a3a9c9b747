//! The workers' slots, as in `worker/src/slot.rs` and `worker/src/attempt/mod.rs`: the row first, then the
//! broker, the acknowledgement last. Each effect is an operation of its own.

use chrono::{DateTime, Utc};
use sexton_model::id::{AttemptNumber, ExecutionId, OpenToken, ProcessId};
use sexton_model::retry::AttemptEnd;
use sexton_model::ticket::{ForeignTask, IncomingMessage};
use sexton_store::foreign::FreshIds;
use sexton_store::lease::AttemptFence;
use sexton_store::open::{OpenRequest, Opened};
use sexton_store::tickets::UnpublishedTicket;
use std::time::Duration;

use super::broker::{Message, pick};
use super::case::Simulation;
use super::invariants::invariant;
use super::op::{Cut, End, Op, ScriptedAnswer};
use super::stop::Stop;
use super::writes::CHECK;

/// Slots of each worker.
pub(super) const SLOTS: usize = 2;
/// What a snoozed task asks for.
const SNOOZE: Duration = Duration::from_secs(2);
/// Workers.
pub(super) const WORKERS: usize = 2;

/// A worker: its process, and the ones before it with the same instance name.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) process: ProcessId,
    pub(super) dead: Vec<ProcessId>,
}

/// A slot.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// The message, until it is acknowledged or returned.
    pub(super) delivery: Option<Message>,
    pub(super) step: Step,
    /// Lines of its task that are known to be stored.
    pub(super) lines: i64,
}

/// How far a slot is.
#[derive(Debug, Default)]
pub(super) enum Step {
    #[default]
    Idle,
    /// A task of another program, not taken over yet.
    Foreign(ForeignTask, FreshIds),
    /// A ticket. `retried`: an earlier answer may have been lost.
    Received { request: OpenRequest, retried: bool },
    /// Opened by an earlier asking: the lease is to be renewed before the task starts.
    Opened(Box<Opened>),
    /// The task runs; by its own clock, which nobody sets, the worker kills it at `until`.
    Running { opened: Box<Opened>, until: DateTime<Utc> },
    /// The task has ended.
    Ran { opened: Box<Opened>, end: Outcome },
    /// The attempt is not this worker's any more.
    Late { held: AttemptFence, outcome: &'static str },
    /// Its end is recorded; the next ticket is to be published.
    Settled(Box<UnpublishedTicket>),
    /// That ticket is in its queue, for this revision.
    Published(ExecutionId, i32),
    /// The ticket opened nothing; a copy goes elsewhere.
    Moving { copy: Message, to: Elsewhere },
    /// All is done but the acknowledgement.
    Acking,
}

/// Where a ticket that opened nothing goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Elsewhere {
    DelayQueues(Duration),
    Failed,
}

/// How a task ended, as it is decided on and recorded.
#[expect(clippy::struct_field_names, reason = "as a settlement calls it")]
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) ending: AttemptEnd,
    pub(super) outcome: &'static str,
    /// What a question says.
    pub(super) reply: Option<ScriptedAnswer>,
}

impl From<End> for Outcome {
    fn from(end: End) -> Self {
        let (ending, outcome) = match end {
            End::Succeeds => (AttemptEnd::Success, "succeeded"),
            End::Fails => (AttemptEnd::Retryable { after: None }, "error"),
            End::FailsForGood => (AttemptEnd::Permanent, "permanent"),
            End::FailsHopelessly => (AttemptEnd::Retryable { after: None }, "hopeless"),
            End::TimesOut => (AttemptEnd::TimedOut, "timeout"),
            End::Crashes => (AttemptEnd::Crashed, "out_of_memory"),
            End::IsInterrupted => (AttemptEnd::Interrupted, "interrupted"),
            End::Snoozes => (AttemptEnd::Snoozed { after: SNOOZE }, "snoozed"),
        };
        Self { ending, outcome, reply: None }
    }
}

impl Step {
    /// The execution whose task runs here.
    pub(super) fn runs(&self) -> Option<ExecutionId> {
        match self {
            Self::Running { opened, .. } => Some(opened.execution_id),
            _ => None,
        }
    }
}

/// All that fences an opened attempt.
pub(super) fn held(opened: &Opened) -> AttemptFence {
    AttemptFence { execution_id: opened.execution_id, attempt: opened.attempt, token: opened.token }
}

/// Until when a task may run after a lease that the worker requested at `sent`: see `worker/src/attempt/lease_renewer.rs`.
pub(super) fn own_clock(sent: DateTime<Utc>, lease: Duration) -> DateTime<Utc> {
    let margin = (lease / 10).clamp(Duration::from_millis(200), Duration::from_secs(2));
    sent + lease.saturating_sub(margin)
}

impl Simulation<'_> {
    /// A slot's operations that need no database.
    pub(super) fn slot(&mut self, op: Op) -> Result<(), Stop> {
        match op {
            Op::Deliver { slot, message } => return self.deliver(slot, message),
            Op::End { slot, end } => self.end(slot, end),
            Op::Answer { slot, reply } => self.answer(slot, reply),
            Op::Send { slot, cut } => self.send(slot, cut),
            Op::Acknowledge { slot } => {
                if let Some(slot) = self.nth(slot, |step| matches!(step, Step::Acking)) {
                    *slot = Slot::default();
                }
            }
            Op::LetGo { slot } => {
                if let Some(slot) = self.nth(slot, |step| matches!(step, Step::Running { .. })) {
                    slot.delivery = None;
                }
            }
            Op::GiveBack { slot } => {
                let unopened =
                    |step: &Step| matches!(step, Step::Received { .. } | Step::Foreign(..));
                if let Some(slot) = self.nth(slot, unopened) {
                    let returned = std::mem::take(slot).delivery;
                    self.broker.main.extend(returned);
                }
            }
            Op::Disconnect { worker } => {
                for slot in Self::slots_of(worker) {
                    let returned = self.slots[slot].delivery.take();
                    self.broker.main.extend(returned);
                }
            }
            Op::WorkerDies { worker } => {
                for slot in Self::slots_of(worker) {
                    let returned = std::mem::take(&mut self.slots[slot]).delivery;
                    self.broker.main.extend(returned);
                }
                let process = ProcessId::new(self.fresh());
                let worker = &mut self.workers[usize::from(worker) % WORKERS];
                worker.dead.push(std::mem::replace(&mut worker.process, process));
            }
            _ => {}
        }
        Ok(())
    }

    /// The slots of a worker.
    pub(super) fn slots_of(worker: u8) -> std::ops::Range<usize> {
        let first = usize::from(worker) % WORKERS * SLOTS;
        first..first + SLOTS
    }

    /// One of the slots at such a step.
    fn nth(&mut self, index: u8, such: impl Fn(&Step) -> bool) -> Option<&mut Slot> {
        let found: Vec<usize> =
            (0..self.slots.len()).filter(|slot| such(&self.slots[*slot].step)).collect();
        pick(index, found.len()).map(|index| &mut self.slots[found[index]])
    }

    fn deliver(&mut self, slot: u8, message: u8) -> Result<(), Stop> {
        let Some(message) = pick(message, self.broker.main.len()) else { return Ok(()) };
        let token = OpenToken::new(self.fresh());
        let ids = FreshIds {
            job: sexton_model::id::JobId::new(self.fresh()),
            execution: ExecutionId::new(self.fresh()),
        };
        if self.nth(slot, |step| matches!(step, Step::Idle)).is_none() {
            return Ok(());
        }
        let message = self.broker.main.remove(message);
        let step = match message.reads() {
            IncomingMessage::Ticket { execution_id, attempt } => Step::Received {
                request: OpenRequest { execution_id, attempt, token },
                retried: false,
            },
            IncomingMessage::Foreign(task) => Step::Foreign(task, ids),
            IncomingMessage::Unreadable { reason } => return Err(Stop::broken(reason)),
        };
        if let Some(slot) = self.nth(slot, |step| matches!(step, Step::Idle)) {
            *slot = Slot { delivery: Some(message), step, lines: 0 };
        }
        Ok(())
    }

    fn end(&mut self, slot: u8, end: End) {
        let Some(slot) = self.nth(slot, |step| matches!(step, Step::Running { .. })) else {
            return;
        };
        let Step::Running { opened, .. } = std::mem::take(&mut slot.step) else { return };
        let id = opened.execution_id;
        slot.step = Step::Ran { opened, end: end.into() };
        if end == End::Succeeds {
            self.ledger.succeed(id);
        }
    }

    /// A running question succeeds with an answer.
    fn answer(&mut self, slot: u8, reply: ScriptedAnswer) {
        let is_question =
            |step: &Step| matches!(step, Step::Running { opened, .. } if opened.task_type == CHECK);
        let Some(slot) = self.nth(slot, is_question) else { return };
        let Step::Running { opened, .. } = std::mem::take(&mut slot.step) else { return };
        let (id, attempt) = (opened.execution_id, opened.attempt);
        let end = Outcome { reply: Some(reply), ..End::Succeeds.into() };
        slot.step = Step::Ran { opened, end };
        self.ledger.succeed(id);
        self.ledger.bulks.record_answer(id, attempt, reply);
    }

    fn send(&mut self, slot: u8, cut: Cut) {
        let now = self.now;
        let sends = |step: &Step| matches!(step, Step::Settled(_) | Step::Moving { .. });
        let Some(slot) = self.nth(slot, sends) else { return };
        match std::mem::take(&mut slot.step) {
            Step::Settled(unpublished) => {
                // Without a confirm the ticket stays unpublished, for the relay.
                slot.step = match cut {
                    Cut::No => Step::Published(unpublished.ticket.execution_id, unpublished.rev),
                    Cut::Before | Cut::After => Step::Acking,
                };
                if cut != Cut::Before {
                    self.broker.publish(&unpublished, now);
                }
            }
            Step::Moving { copy, to } => {
                // Not confirmed is published once more.
                let again = Step::Moving { copy: copy.clone(), to };
                slot.step = if cut == Cut::No { Step::Acking } else { again };
                match to {
                    _ if cut == Cut::Before => {}
                    Elsewhere::DelayQueues(rest) => self.broker.wait(copy, rest, now),
                    Elsewhere::Failed => self.broker.failed.push(copy),
                }
            }
            _ => {}
        }
    }

    /// Tasks whose lease is nearly over are killed, whatever else goes on.
    pub(super) fn kill_by_own_clock(&mut self) {
        for slot in &mut self.slots {
            if let Step::Running { opened, until } = &slot.step
                && *until <= self.steady
                && self.parts.own_clock
            {
                slot.step = Step::Late { held: held(opened), outcome: "lease_lost" };
            }
        }
    }

    /// No execution's task runs in two places.
    pub(super) fn no_two_run_at_once(&self) -> Result<(), Stop> {
        let mut running: Vec<ExecutionId> =
            self.slots.iter().filter_map(|slot| slot.step.runs()).collect();
        running.sort_unstable();
        let twice = running.windows(2).find(|pair| pair[0] == pair[1]);
        invariant!(twice.is_none(), "two tasks of execution {twice:?} run at the same time");
        Ok(())
    }

    /// The tickets in the slots' hands. One that waits for its acknowledgement only is spent.
    pub(super) fn in_hand(&self) -> impl Iterator<Item = (ExecutionId, AttemptNumber)> {
        let held = self.slots.iter().filter(|slot| !matches!(slot.step, Step::Acking));
        held.filter_map(|slot| self.ticket_of(slot.delivery.as_ref()?))
    }
}
