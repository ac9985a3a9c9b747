//! The model of one execution: its initial state, and the effect of each action.

pub mod action;
mod canonical;
pub mod fences;
pub mod properties;
mod queues;
pub mod scenarios;
mod statements;
mod steps;
mod trace;
pub mod world;

use sexton_model::state::State;

use self::action::{Action, Actor, Clock};
use self::fences::{Fence, Fences, Part};
use self::properties::Property;
use self::world::{
    FailedQueue, Holder, Number, Row, Scheduler, Step, Sweep, Tickets, UsedBudgets, Worker, World,
};
use crate::explorer::{Graph, History, Id, Model, Refused, liveness, take};

/// The bounds of a check.
#[expect(clippy::struct_excessive_bools, reason = "each says whether one thing is looked at")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Its name.
    pub name: &'static str,
    /// Its subject, for people.
    pub about: &'static str,
    /// Whether the execution begins with a foreign message in the main queue, twice, rather than with
    /// a firing that every scheduler has planned.
    pub foreign: bool,
    /// One or two.
    pub schedulers: u8,
    /// Whether worker A and worker B have the task type.
    pub offers: [bool; 2],
    /// Whether tasks also time out and run out of memory, so that every budget is used.
    pub budgets: bool,
    /// Whether tasks also snooze.
    pub snoozes: bool,
    /// Whether the job has a `stale_after`, so that the firing may become stale.
    pub stale: bool,
    /// Faults in one history, of any kinds, at any places.
    pub faults: u8,
    /// Number of people's actions in one history.
    pub people: u8,
    /// Maximum number of copies of the row's own ticket in each queue.
    pub copies: u8,
}

/// The protocol within bounds, with its fences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Protocol {
    /// The bounds.
    pub bounds: Bounds,
    /// The fences in place.
    pub fences: Fences,
}

impl Worker {
    pub(crate) const IDLE: Self =
        Self { step: Step::Idle, number: Number::Current, delivery: false };
}

impl Model for Protocol {
    type State = World;
    type Action = Action;
    type Actor = Actor;
    type Property = Property;

    const NAME: &'static str = "one execution";

    fn check_name(&self) -> String {
        self.bounds.name.to_owned()
    }

    fn bounds_text(&self) -> String {
        self.bounds.about.to_owned()
    }

    fn initial_state(&self) -> World {
        let Bounds { foreign, schedulers, faults, people, .. } = self.bounds;
        let planned = |who| {
            if foreign || who >= schedulers { Scheduler::Idle } else { Scheduler::Planned }
        };
        World {
            row: Row {
                claimed: false,
                state: State::Pending,
                unpublished: false,
                held: false,
                due: true,
                long_due: false,
                fresh: self.bounds.stale,
                stale: false,
                used: UsedBudgets::default(),
                holder: Holder::Nobody,
                lease_over: false,
                clock_ahead: false,
                cancel: false,
                marked_in_pass: false,
            },
            second_row: false,
            workers: [Worker::IDLE; 2],
            schedulers: [planned(0), planned(1)],
            sweep: Sweep::Idle,
            main: Tickets { current: if foreign { 2 } else { 0 }, overtaken: 0 },
            delayed: Tickets::default(),
            failed: FailedQueue::default(),
            tail: FailedQueue::default(),
            faults,
            people,
            excused: false,
            touched: false,
            wrong: None,
        }
    }

    fn actions(&self) -> Vec<Action> {
        Action::all()
    }

    fn step(&self, world: &World, action: Action) -> Result<Option<World>, Refused> {
        let mut next = *world;
        let done = match action {
            Action::Scheduler(who, step) => self.scheduler(&mut next, usize::from(who), step)?,
            Action::Deliver(who, number) => Self::deliver(&mut next, usize::from(who), number),
            Action::Worker(who, step) => self.worker(&mut next, usize::from(who), step)?,
            Action::Rescue => self.works(Part::Rescuer) && next.lose(false, self.fences),
            Action::AcquireInstanceLock => {
                self.works(Part::Rescuer) && next.lose(true, self.fences)
            }
            Action::Reconcile => self.works(Part::Reconciler) && Self::reconcile(&mut next),
            Action::Sweep(step) => self.sweep(&mut next, step)?,
            Action::Clock(clock) => self.pass_time(&mut next, clock),
            Action::Release(number) => self.release(&mut next, number)?,
            Action::Fault(fault) => take(&mut next.faults) && self.strike(&mut next, fault)?,
            Action::Person(operator_action) => {
                next.touched = true;
                take(&mut next.people) && self.apply_operator_action(&mut next, operator_action)?
            }
        };
        Ok(done.then_some(next))
    }

    fn canonical(&self, world: World) -> World {
        self.without_names(self.without_spent_steps(world))
    }

    fn without_ineffective(&self, world: World) -> World {
        self.without_spent_steps(world)
    }

    fn is_disturbance(action: Action) -> bool {
        action.is_disturbance()
    }

    fn allows_disturbance(&self, world: &World) -> bool {
        world.faults > 0 || world.people > 0
    }

    fn actor(action: Action) -> Actor {
        action.actor()
    }

    fn has_ended(world: &World) -> bool {
        world.is_ended()
    }

    fn liveness_violation(&self, graph: &Graph<Self>) -> Option<(Property, Id)> {
        if let Some(id) = liveness::first_of_a_trap(graph, &Actor::FAIR) {
            return Some((Property::NoEndlessExchange, id));
        }
        let disagrees = |world: &World| world.sweep == Sweep::Idle && !world.agrees();
        let id = liveness::first_at_rest_where(graph, disagrees)?;
        Some((Property::FailedQueueAgrees, id))
    }

    fn describe(&self, history: &History<Self>) -> Vec<String> {
        trace::render(self, history)
    }
}

impl Protocol {
    fn works(&self, part: Part) -> bool {
        self.fences.works(part)
    }

    fn deliver(world: &mut World, who: usize, number: Number) -> bool {
        if world.workers[who].step != Step::Idle || !take(world.main.of(number)) {
            return false;
        }
        world.workers[who] = Worker { step: Step::Received, number, delivery: true };
        true
    }

    fn pass_time(&self, world: &mut World, clock: Clock) -> bool {
        let row = &mut world.row;
        let waits = matches!(row.state, State::Pending | State::Retrying) && row.claimed;
        match clock {
            Clock::Due => waits && !std::mem::replace(&mut row.due, true),
            Clock::LongDue => {
                // Only a worker without the task type needs the answer.
                let needs_answer = self.bounds.offers.contains(&false);
                needs_answer && waits && row.due && !std::mem::replace(&mut row.long_due, true)
            }
            Clock::Stale => {
                let fresh = row.state == State::Pending && row.claimed && row.fresh;
                fresh && !std::mem::replace(&mut row.stale, true)
            }
            Clock::HoldOver => row.unpublished && std::mem::replace(&mut row.held, false),
            Clock::LeaseOver => {
                row.state == State::Running
                    && !self.is_kept(world)
                    && !std::mem::replace(&mut world.row.lease_over, true)
            }
        }
    }

    /// Returns whether the lease cannot be over yet: its worker renews it, or would be dead before. Observers' own
    /// clocks guarantee this, whatever the database's clock does.
    fn is_kept(&self, world: &World) -> bool {
        let Holder::Worker(who) = world.row.holder else { return false };
        match world.workers[usize::from(who)].step {
            Step::Running { cut: true } => self.fences.has(Fence::OwnClock),
            Step::Running { cut: false } => true,
            _ => false,
        }
    }

    fn release(&self, world: &mut World, number: Number) -> Result<bool, Refused> {
        let waits = matches!(world.row.state, State::Pending | State::Retrying);
        if number == Number::Current && waits && !world.row.due {
            return Ok(false);
        }
        if !take(world.delayed.of(number)) {
            return Ok(false);
        }
        world.main.put(number, self.bounds.copies).map(|()| true)
    }

    /// Depends only on the row, and on a main queue without a ticket; five minutes are long enough for any existing
    /// ticket to have shown up.
    fn reconcile(world: &mut World) -> bool {
        let waiting = |worker: &Worker| worker.delivery && worker.number == Number::Current;
        let anywhere = world.delayed.current > 0 || world.workers.iter().any(waiting);
        if !world.seems_lost() || !world.main.is_empty() || anywhere {
            return false;
        }
        world.republish();
        true
    }
}

impl World {
    /// Returns whether the ticket is published, due, and not opened.
    pub(crate) fn seems_lost(&self) -> bool {
        let waits = matches!(self.row.state, State::Pending | State::Retrying);
        self.row.claimed && waits && !self.row.unpublished && self.row.due
    }

    /// Gives up the token that `worker` holds.
    pub(crate) fn leave(&mut self, worker: usize, becomes: Holder) {
        if self.row.holder == Holder::Worker(worker as u8) {
            self.row.holder = becomes;
        }
    }
}
