//! All actions, one effect at a time.
//!
//! A process that can die between two effects has an action for each of them, so that every crash point is a state in
//! which [`Fault::WorkerDies`] and its like may strike.

use crate::protocol::world::{Ending, Number, Parked};

/// One action.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// A scheduler's publishing loops take a step.
    Scheduler(u8, SchedulerStep),
    /// The broker delivers a ticket to an idle worker.
    Deliver(u8, Number),
    /// A worker takes a step.
    Worker(u8, WorkerStep),
    /// The rescuer ends an attempt that it has seen unrenewed for a lease.
    Rescue,
    /// A worker that takes a dead one's instance lock ends that one's attempt.
    AcquireInstanceLock,
    /// The reconciler marks a lost ticket as unpublished.
    Reconcile,
    /// The sweep takes a step.
    Sweep(SweepStep),
    /// Time passes.
    Clock(Clock),
    /// The delay queues return a ticket to the main queue, when the row is due or long past it.
    Release(Number),
    /// A fault occurs.
    Fault(Fault),
    /// A person acts.
    Person(OperatorAction),
}

/// A scheduler's effects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SchedulerStep {
    /// Inserts the execution.
    Claim,
    /// Takes an unpublished ticket, which hides it from other relays.
    Take,
    /// Publishes the taken ticket, confirmed.
    Publish,
    /// Marks it as published.
    Mark,
}

/// A worker's effects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WorkerStep {
    /// Claims a foreign task's execution.
    Adopt,
    /// Opens its ticket, and handles the result.
    Ask,
    /// Renews the lease of an attempt it had opened earlier, and starts the task.
    Start,
    /// Returns a ticket whose open was not answered for too long.
    GiveUp,
    /// Its task ends.
    End(Ending),
    /// Kills its task by its own clock, because renewals do not get through.
    FenceItself,
    /// Reaches the database again.
    Reconnect,
    /// Renews a lease that was over.
    RenewLate,
    /// Kills its task, because the renewal was refused.
    HearOfFence,
    /// Acknowledges the ticket of a long task.
    AckEarly,
    /// Records the end of its attempt.
    Settle,
    /// Publishes the settlement's ticket, confirmed.
    Publish,
    /// Marks it as published.
    Mark,
    /// Publishes a copy of its ticket to another queue.
    MoveOn,
    /// Acknowledges its ticket.
    Ack,
}

/// The sweep's effects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SweepStep {
    /// Begins a pass: counts the messages.
    Begin,
    /// Takes a message.
    Get(Parked),
    /// Reads the row and judges the message.
    Judge,
    /// Fails the execution whose ticket the broker parked.
    Fail,
    /// Puts a clean copy at the tail.
    Copy,
    /// Acknowledges the message.
    Ack,
    /// Ends the pass; a complete one marks messages as unpublished that it has not seen.
    Finish,
}

/// The effects of passing time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Clock {
    /// The next attempt is due.
    Due,
    /// It has been due for an hour.
    LongDue,
    /// A relay's claim on a ticket, or the process's time to publish it, is over.
    HoldOver,
    /// The lease was not renewed for its whole length.
    LeaseOver,
    /// The firing becomes stale.
    Stale,
}

/// The faults.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// A worker is killed, and its task with it; its unacknowledged ticket returns.
    WorkerDies(u8),
    /// A scheduler's publishing loops are killed.
    SchedulerDies(u8),
    /// The scheduler that sweeps is killed; its unacknowledged message returns.
    SweepDies,
    /// A worker loses its connection to the broker; its ticket returns while it goes on.
    ConnectionLost(u8),
    /// An open is committed; its answer is lost.
    OpenUnanswered(u8),
    /// The renewal before a task's start is not answered.
    StartUnanswered(u8),
    /// A settlement is committed; its answer is lost.
    SettleUnanswered(u8),
    /// A publication of a worker is in its queue; the confirm is lost.
    ConfirmLost(u8),
    /// A worker cannot publish its ticket.
    PublishFails(u8),
    /// A worker with a running task is cut off from the database.
    CutOff(u8),
    /// A worker receives a stop signal.
    Stop(u8),
    /// A ticket leaves the delay queues before the row is due.
    ReleasedEarly,
    /// The broker parks a ticket after too many deliveries.
    ParkedByBroker(Number),
    /// A ticket in the main queue is duplicated.
    Doubled(Number),
    /// The broker loses its data.
    Wiped,
    /// The reconciler takes an existing ticket for lost.
    WrongGuess,
    /// The delay queue of a worker's ticket refuses it, and the worker returns it to its row.
    Refused(u8),
    /// The database's clock is set ahead by more than a lease: by it, every open attempt's lease is over.
    ClockAhead,
}

/// The actions of people.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OperatorAction {
    /// `sexton failed requeue`.
    Requeue,
    /// `sexton failed discard`.
    Discard,
    /// `sexton failed restore`.
    Restore,
    /// `sexton executions cancel`.
    Cancel,
    /// Moves a message from the failed queue to the main queue.
    MoveBack(Parked),
    /// Copies one there.
    CopyBack(Parked),
    /// Moves a ticket from the main queue to the failed queue.
    MoveAway(Number),
}

/// The actor of an action. Each of these acts whenever it can act for good: weak fairness.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Actor {
    /// A scheduler's publishing loops.
    Scheduler(u8),
    /// The broker's delivery.
    Broker,
    /// The delay queues.
    DelayQueues,
    /// A worker.
    Worker(u8),
    /// The rescuer.
    Rescuer,
    /// The reconciler.
    Reconciler,
    /// The sweep.
    Sweep,
    /// A timer.
    Clock(Clock),
    /// No reliable actor: faults, people, a worker's instance lock, early acks.
    Chance,
}

impl Actor {
    /// All actors that act reliably.
    pub const FAIR: [Self; 13] = [
        Self::Scheduler(0),
        Self::Scheduler(1),
        Self::Broker,
        Self::DelayQueues,
        Self::Worker(0),
        Self::Worker(1),
        Self::Rescuer,
        Self::Reconciler,
        Self::Sweep,
        Self::Clock(Clock::Due),
        Self::Clock(Clock::LongDue),
        Self::Clock(Clock::HoldOver),
        Self::Clock(Clock::LeaseOver),
    ];
}

impl Action {
    /// Returns whether it comes from outside: a fault or a person.
    pub const fn is_disturbance(self) -> bool {
        matches!(self, Self::Fault(_) | Self::Person(_))
    }

    /// Returns its actor.
    pub const fn actor(self) -> Actor {
        match self {
            Self::Scheduler(who, _) => Actor::Scheduler(who),
            Self::Deliver(..) => Actor::Broker,
            Self::Worker(_, WorkerStep::AckEarly)
            | Self::AcquireInstanceLock
            | Self::Fault(_)
            | Self::Person(_) => Actor::Chance,
            Self::Worker(who, _) => Actor::Worker(who),
            Self::Rescue => Actor::Rescuer,
            Self::Reconcile => Actor::Reconciler,
            Self::Sweep(_) => Actor::Sweep,
            Self::Clock(clock) => Actor::Clock(clock),
            Self::Release(_) => Actor::DelayQueues,
        }
    }

    /// Returns every action, in an order that never changes: traces depend on it.
    pub fn all() -> Vec<Self> {
        use SchedulerStep as S;
        use SweepStep as W;
        let mut all = Vec::with_capacity(128);
        for who in [0, 1] {
            all.extend([S::Claim, S::Take, S::Publish, S::Mark].map(|s| Self::Scheduler(who, s)));
        }
        for who in [0, 1] {
            all.extend(Number::ALL.map(|number| Self::Deliver(who, number)));
            all.extend(worker_steps().map(|step| Self::Worker(who, step)));
        }
        all.extend([
            Self::Rescue,
            Self::AcquireInstanceLock,
            Self::Reconcile,
            Self::Sweep(W::Begin),
        ]);
        all.extend(Parked::ALL.map(|kind| Self::Sweep(W::Get(kind))));
        all.extend([W::Judge, W::Fail, W::Copy, W::Ack, W::Finish].map(Self::Sweep));
        let clocks = [Clock::Due, Clock::LongDue, Clock::HoldOver, Clock::LeaseOver, Clock::Stale];
        all.extend(clocks.map(Self::Clock));
        all.extend(Number::ALL.map(Self::Release));
        all.extend(faults().map(Self::Fault));
        all.extend(operator_actions().map(Self::Person));
        all
    }
}

fn worker_steps() -> impl Iterator<Item = WorkerStep> {
    use WorkerStep as W;
    let before = [W::Adopt, W::Ask, W::GiveUp, W::Start];
    let after = [
        W::FenceItself,
        W::Reconnect,
        W::RenewLate,
        W::HearOfFence,
        W::AckEarly,
        W::Settle,
        W::Publish,
        W::Mark,
        W::MoveOn,
        W::Ack,
    ];
    before.into_iter().chain(Ending::ALL.map(W::End)).chain(after)
}

fn faults() -> impl Iterator<Item = Fault> {
    use Fault as F;
    let of_worker = |who| {
        [
            F::WorkerDies(who),
            F::ConnectionLost(who),
            F::OpenUnanswered(who),
            F::StartUnanswered(who),
            F::SettleUnanswered(who),
            F::ConfirmLost(who),
            F::PublishFails(who),
            F::CutOff(who),
            F::Stop(who),
        ]
    };
    let others = [
        F::SchedulerDies(0),
        F::SchedulerDies(1),
        F::SweepDies,
        F::ReleasedEarly,
        F::Wiped,
        F::WrongGuess,
        F::ClockAhead,
        F::Refused(0),
        F::Refused(1),
    ];
    let of_tickets =
        Number::ALL.into_iter().flat_map(|number| [F::Doubled(number), F::ParkedByBroker(number)]);
    of_tickets.chain(others).chain([0, 1].into_iter().flat_map(of_worker))
}

fn operator_actions() -> impl Iterator<Item = OperatorAction> {
    let plain = [
        OperatorAction::Requeue,
        OperatorAction::Discard,
        OperatorAction::Restore,
        OperatorAction::Cancel,
    ];
    plain
        .into_iter()
        .chain(
            Parked::ALL
                .into_iter()
                .flat_map(|kind| [OperatorAction::MoveBack(kind), OperatorAction::CopyBack(kind)]),
        )
        .chain(Number::ALL.map(OperatorAction::MoveAway))
}
