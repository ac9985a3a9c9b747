//! A worker's slot, as in its code: row first, then the broker, then the acknowledgement.

use sexton_model::open::OpenDecision;

use crate::explorer::Refused;
use crate::protocol::Protocol;
use crate::protocol::action::WorkerStep;
use crate::protocol::fences::Fence;
use crate::protocol::statements::Opening;
use crate::protocol::world::{
    Ending, Holder, Number, Queue, Step, UnpublishedTicket, Worker, World,
};

impl Protocol {
    pub(crate) fn worker(
        &self,
        world: &mut World,
        who: usize,
        step: WorkerStep,
    ) -> Result<bool, Refused> {
        let me = world.workers[who];
        let holds = world.row.holder == Holder::Worker(who as u8);
        let next = match (step, me.step) {
            (WorkerStep::Adopt, Step::Received) => return Ok(self.adopt(world)),
            (WorkerStep::Ask, Step::Received) if world.row.claimed => self.ask(world, who),
            (WorkerStep::GiveUp, Step::Received) if holds => return self.give_back(world, who),
            (WorkerStep::Start, Step::Opened) if world.renews(who, self.fences) => {
                world.row.renewed();
                Step::Running { cut: false }
            }
            (WorkerStep::Start, Step::Opened) => Step::Acking,
            (WorkerStep::End(ending), Step::Running { cut }) => {
                // A worker learns of a cancel by a renewal.
                let cancelled = world.row.cancel && holds && !cut;
                let seldom = matches!(ending, Ending::TimedOut | Ending::Crashed);
                let never = (seldom && !self.bounds.budgets)
                    || (ending == Ending::Snoozed && !self.bounds.snoozes);
                if never || (ending == Ending::Interrupted && !cancelled) {
                    return Ok(false);
                }
                Step::Ran(ending)
            }
            (WorkerStep::FenceItself, Step::Running { cut: true })
                if self.fences.has(Fence::OwnClock) =>
            {
                world.leave(who, Holder::Left);
                Step::Acking
            }
            (WorkerStep::Reconnect, Step::Running { cut: true }) => Step::Running { cut: false },
            (WorkerStep::RenewLate, Step::Running { cut: false })
                if holds && (world.row.lease_over || world.row.clock_ahead) =>
            {
                world.row.renewed();
                me.step
            }
            (WorkerStep::HearOfFence, Step::Running { cut: false }) if !holds => Step::Acking,
            (WorkerStep::AckEarly, Step::Running { .. }) if me.delivery => {
                world.workers[who].delivery = false;
                me.step
            }
            (WorkerStep::Settle, Step::Ran(ending)) => self.record(world, who, ending),
            (WorkerStep::Publish, Step::Settled(ticket)) => {
                world.publish(ticket.to, ticket.number, self.bounds.copies)?;
                Step::Published(ticket.fresh)
            }
            (WorkerStep::Mark, Step::Published(fresh)) => {
                world.mark(fresh, self.fences);
                Step::Acking
            }
            (WorkerStep::MoveOn, Step::Moving(to)) => {
                world.publish(to, me.number, self.bounds.copies)?;
                Step::Acking
            }
            (WorkerStep::Ack, Step::Acking) => {
                world.workers[who] = Worker::IDLE;
                return Ok(true);
            }
            _ => return Ok(false),
        };
        world.workers[who].step = next;
        Ok(true)
    }

    /// A foreign message itself is the first ticket, so its row has no unpublished one. Once the row exists, a copy
    /// of the message finds it and is a ticket like others.
    fn adopt(&self, world: &mut World) -> bool {
        let checks_key = !world.row.claimed || !self.fences.has(Fence::UniqueKey);
        self.bounds.foreign && checks_key && !world.second_row && world.claim(false, self.fences)
    }

    /// The open and, if it opened nothing, the read and its decision. They are two statements; but the effect depends
    /// only on the read, so a change between them equals a change before both.
    fn ask(&self, world: &mut World, who: usize) -> Step {
        let offered = self.bounds.offers[who];
        match world.open(who, offered, self.fences) {
            Opening::Opened => return Step::Running { cut: false },
            Opening::Skipped => return Step::Acking,
            Opening::Nothing => {}
        }
        match world.answer(who, offered, self.fences) {
            OpenDecision::Run if self.fences.has(Fence::RenewalFirst) => Step::Opened,
            OpenDecision::Run => Step::Running { cut: false },
            OpenDecision::Retry => Step::Received,
            OpenDecision::AlreadyOpened | OpenDecision::Stale | OpenDecision::Future => {
                Step::Acking
            }
            OpenDecision::Wait(_) => Step::Moving(Queue::Delay),
            OpenDecision::UnknownExecution | OpenDecision::Repark => Step::Moving(Queue::Failed),
            OpenDecision::Unoffered => {
                let number = world.workers[who].number;
                world.fail_unopened(number, self.fences);
                Step::Acking
            }
        }
    }

    fn record(&self, world: &mut World, who: usize, ending: Ending) -> Step {
        if !world.settle(who, ending, self.fences) {
            world.leave(who, Holder::Left);
            return Step::Acking;
        }
        if !world.row.state.has_ticket() {
            return Step::Acking;
        }
        let to = world.destination();
        Step::Settled(UnpublishedTicket { number: Number::Current, fresh: true, to })
    }

    /// The ticket returns to its queue unread, and the token is given up.
    pub(crate) fn give_back(&self, world: &mut World, who: usize) -> Result<bool, Refused> {
        let Worker { number, delivery, .. } = world.workers[who];
        if delivery {
            world.main.put(number, self.bounds.copies)?;
        }
        world.leave(who, Holder::Left);
        world.workers[who] = Worker::IDLE;
        Ok(true)
    }
}
