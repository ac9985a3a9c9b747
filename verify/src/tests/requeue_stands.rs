//! An operator's requeue is not undone by messages that the broker had parked before it: the histories of the parking
//! broker and the dying sweep, with a record of the past that the model itself does not have.

use stateright::Checker;

use crate::explorer::Model;
use crate::protocol::action::{Action, Fault, OperatorAction, SweepStep};
use crate::protocol::fences::{Fence, Fences};
use crate::protocol::scenarios::SMALL;
use crate::protocol::world::{HeldMessage, Parked, Step, Sweep, World};
use crate::protocol::{Bounds, Protocol};

const STANDS: &str = "a requeue stands";

/// The protocol with only these two faults, with only the actions of people in `hands`, and with one worker: it
/// concerns the broker, the sweep and the operator.
struct Watched {
    protocol: Protocol,
    hands: fn(OperatorAction) -> bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Seen {
    world: World,
    /// A message with the broker's dead-letter reason and the row's number has been there since before the requeue.
    from_before: bool,
    /// That message has failed the execution.
    undone: bool,
}

/// Returns whether a message with the broker's dead-letter reason has the row's number.
fn noted(world: &World) -> bool {
    let in_hand = match world.sweep {
        Sweep::Pass {
            hand: HeldMessage::Got(kind) | HeldMessage::Judged(kind, _) | HeldMessage::Copied(kind),
            ..
        } => kind == Parked::Noted,
        _ => false,
    };
    in_hand || world.failed.noted + world.tail.noted > 0
}

impl stateright::Model for Watched {
    type State = Seen;
    type Action = Action;

    fn init_states(&self) -> Vec<Seen> {
        let world = self.protocol.canonical(self.protocol.initial_state());
        vec![Seen { world, from_before: false, undone: false }]
    }

    fn actions(&self, seen: &Seen, actions: &mut Vec<Action>) {
        let idle = seen.world.workers.iter().all(|worker| worker.step == Step::Idle);
        actions.extend(Action::all().into_iter().filter(|action| match *action {
            Action::Fault(fault) => matches!(fault, Fault::ParkedByBroker(_) | Fault::SweepDies),
            Action::Person(operator_action) => (self.hands)(operator_action),
            Action::Deliver(..) => idle,
            _ => true,
        }));
    }

    fn next_state(&self, seen: &Seen, action: Action) -> Option<Seen> {
        let world = self.protocol.step(&seen.world, action).ok().flatten()?;
        let world = self.protocol.canonical(world);
        let fails =
            action == Action::Sweep(SweepStep::Fail) && world.row.state != seen.world.row.state;
        let from_before = match action {
            Action::Person(OperatorAction::Requeue) => noted(&seen.world),
            _ => seen.from_before && noted(&world),
        };
        Some(Seen { world, from_before, undone: fails && seen.from_before })
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        vec![stateright::Property::always(STANDS, |_, seen: &Seen| !seen.undone)]
    }
}

/// Returns whether a history exists in which a requeue is undone, with this many actions of `hands`.
fn is_undone(fences: Fences, people: u8, hands: fn(OperatorAction) -> bool) -> bool {
    let bounds = Bounds { faults: 2, people, ..SMALL[0].bounds };
    let watched = Watched { protocol: Protocol { bounds, fences }, hands };
    let checker = stateright::Model::checker(watched).spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    checker.discovery(STANDS).is_some()
}

fn command(operator_action: OperatorAction) -> bool {
    operator_action == OperatorAction::Requeue
}

#[test]
fn a_requeue_survives_parking_by_the_broker_and_a_dying_sweep() {
    assert!(!is_undone(Fences::ALL, 1, command));
    assert!(is_undone(Fences::ALL.without(Fence::NewNumber), 1, command));
}

/// Both at once: the command, and a copy of the parked message in the main queue by hand.
#[test]
fn only_a_manually_moved_copy_that_the_broker_parked_undoes_a_requeue() {
    let hand = |operator_action| {
        command(operator_action) || operator_action == OperatorAction::CopyBack(Parked::Plain)
    };
    assert!(is_undone(Fences::ALL, 2, hand));
}
