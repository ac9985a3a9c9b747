//! The properties of single states, and of the paths between them.

use sexton_model::state::State;

use crate::explorer::CheckedProperty;
use crate::protocol::world::{
    HeldMessage, Number, SafetyViolation, Scheduler, Step, Sweep, UnpublishedTicket, Worker, World,
};

/// The properties that must hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Property {
    /// At most one row for each job and execution key.
    OneExecution,
    /// Each number is opened at most once, by its own ticket.
    OpenedOnce,
    /// An attempt is never opened before it is due.
    NeverEarly,
    /// Two tasks of an execution never run at the same time.
    OneLiveRun,
    /// A final state has no successor.
    FinalIsFinal,
    /// A failed execution runs only after a person's action.
    FailedStays,
    /// A row with a published ticket has one, unless an outside fault lost it.
    PublishedIsThere,
    /// Without further disturbances an end can be reached.
    EndReachable,
    /// Without further disturbances no fair exchange goes on for ever: every one ends.
    NoEndlessExchange,
    /// Without further disturbances the failed queue and the row agree, and nothing is left over.
    FailedQueueAgrees,
}

impl Property {
    /// The properties of single states.
    pub const OF_STATES: [Self; 7] = [
        Self::OneExecution,
        Self::OpenedOnce,
        Self::NeverEarly,
        Self::OneLiveRun,
        Self::FinalIsFinal,
        Self::FailedStays,
        Self::PublishedIsThere,
    ];
}

impl CheckedProperty<World> for Property {
    const ALL: &'static [Self] = &[
        Self::OneExecution,
        Self::OpenedOnce,
        Self::NeverEarly,
        Self::OneLiveRun,
        Self::FinalIsFinal,
        Self::FailedStays,
        Self::PublishedIsThere,
        Self::EndReachable,
        Self::NoEndlessExchange,
        Self::FailedQueueAgrees,
    ];
    const END_REACHABLE: Self = Self::EndReachable;

    fn sentence(self) -> &'static str {
        match self {
            Self::OneExecution => "one execution for each key",
            Self::OpenedOnce => "an attempt number is opened at most once, by its own ticket",
            Self::NeverEarly => "an attempt is opened no earlier than it is due",
            Self::OneLiveRun => "two tasks of an execution never run at the same time",
            Self::FinalIsFinal => "a final state is final",
            Self::FailedStays => "a failed execution waits for people",
            Self::PublishedIsThere => "a ticket that its row calls published is there",
            Self::EndReachable => "an end stays reachable without further faults",
            Self::NoEndlessExchange => "no exchange goes on for ever without progress",
            Self::FailedQueueAgrees => "the failed row and the parked message agree in the end",
        }
    }

    fn is_broken(self, world: &World) -> bool {
        match self {
            Self::OneExecution => world.second_row,
            Self::OpenedOnce => world.wrong == Some(SafetyViolation::OpenedTwice),
            Self::NeverEarly => world.wrong == Some(SafetyViolation::OpenedEarly),
            Self::FinalIsFinal => world.wrong == Some(SafetyViolation::FinalLeft),
            Self::FailedStays => world.wrong == Some(SafetyViolation::FailedOpened),
            Self::OneLiveRun => {
                world.workers.iter().all(|worker| matches!(worker.step, Step::Running { .. }))
            }
            Self::PublishedIsThere => world.is_missing_its_ticket(),
            Self::EndReachable | Self::NoEndlessExchange | Self::FailedQueueAgrees => false,
        }
    }
}

impl World {
    fn is_missing_its_ticket(&self) -> bool {
        let row = &self.row;
        if !row.claimed || !row.state.has_ticket() || row.unpublished || self.excused {
            return false;
        }
        let in_hand = |worker: &Worker| {
            let holds = matches!(worker.step, Step::Received | Step::Moving(_));
            holds && worker.delivery && worker.number == Number::Current
        };
        let publishes = |ticket: UnpublishedTicket| ticket.number == Number::Current;
        let on_its_way = self.workers.iter().any(|worker| match worker.step {
            Step::Settled(ticket) => publishes(ticket),
            _ => in_hand(worker),
        }) || self.schedulers.iter().any(|scheduler| match scheduler {
            Scheduler::Holding(ticket) => publishes(*ticket),
            _ => false,
        });
        let parked = self.failed.and(self.tail).current();
        self.main.current + self.delayed.current + parked == 0
            && !self.sweep_holds_its_message()
            && !on_its_way
    }

    /// Returns whether the execution has ended: for good, or parked with its message, or discarded; in both latter
    /// cases it waits for an operator.
    pub fn is_ended(&self) -> bool {
        let parked = self.failed.and(self.tail).current() > 0 || self.sweep_holds_its_message();
        match self.row.state {
            State::Failed => !self.row.unpublished && parked,
            State::Discarded => true,
            state => state.is_final(),
        }
    }

    fn sweep_holds_its_message(&self) -> bool {
        let Sweep::Pass { hand, .. } = self.sweep else { return false };
        match hand {
            HeldMessage::Empty => false,
            HeldMessage::Got(kind) | HeldMessage::Judged(kind, _) | HeldMessage::Copied(kind) => {
                kind.number() == Number::Current
            }
        }
    }

    /// Returns whether the queues match the row: one parked message of a failed row, none of another, and no process
    /// has work left. Checked between two passes of the sweep.
    pub fn agrees(&self) -> bool {
        let failed = self.failed.and(self.tail);
        let parked = match self.row.state {
            State::Failed => {
                !self.row.unpublished && failed.current() == 1 && failed.overtaken == 0
            }
            _ => failed.len() == 0,
        };
        let idle = self.workers.iter().all(|worker| worker.step == Step::Idle)
            && self.schedulers.iter().all(|scheduler| *scheduler == Scheduler::Idle);
        parked && idle && self.main.is_empty() && self.delayed.is_empty()
    }
}
