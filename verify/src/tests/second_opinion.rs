//! The same model, checked by `stateright`: another explorer, the same states and the same verdicts.

use stateright::{Checker, Model};

use crate::action::Action;
use crate::fences::{Fence, Fences};
use crate::graph::{Graph, Keep};
use crate::properties::Property;
use crate::protocol::{Bounds, Protocol};
use crate::scenarios::{SMALL, mutant};
use crate::world::World;

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.canonical(self.start())]
    }

    fn actions(&self, _: &World, actions: &mut Vec<Action>) {
        actions.extend(Action::all());
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        self.step(world, action).ok().flatten().map(|next| self.canonical(next))
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        fn holds<const N: usize>(_: &Protocol, world: &World) -> bool {
            !Property::OF_STATES[N].is_broken(world)
        }
        let always = stateright::Property::<Self>::always;
        let names = Property::OF_STATES.map(Property::sentence);
        vec![
            always(names[0], holds::<0>),
            always(names[1], holds::<1>),
            always(names[2], holds::<2>),
            always(names[3], holds::<3>),
            always(names[4], holds::<4>),
            always(names[5], holds::<5>),
            always(names[6], holds::<6>),
        ]
    }
}

#[test]
fn stateright_finds_the_same_states_and_no_violation() {
    for (faults, people) in [(1, 0), (0, 0)] {
        let bounds = Bounds { faults, people, ..SMALL[0].bounds };
        let protocol = Protocol { bounds, fences: Fences::ALL };
        let ours = Graph::explore(&protocol, Keep::States).expect("nothing wrong");
        let theirs = protocol.checker().spawn_bfs().join();
        theirs.assert_properties();
        assert_eq!(theirs.unique_state_count(), ours.len(), "{faults} faults, {people} deeds");
        // It counts the first state as well as the steps.
        assert_eq!(theirs.state_count() as u64, ours.transitions + 1);
    }
}

#[test]
fn stateright_finds_the_violation_without_a_fence_at_the_same_depth() {
    for fence in [Fence::Lease, Fence::State] {
        let (protocol, property) = mutant(fence);
        let ours = Graph::explore(&protocol, Keep::States).expect_err("a counterexample");
        let depth = std::num::NonZeroUsize::new(ours.history.steps.len() + 1);
        let deep = depth.map_or(1, std::num::NonZeroUsize::get);
        let checker = |depth| protocol.checker().target_max_depth(depth).spawn_bfs().join();
        // A history of so many steps ends in a state of one more depth, which must be visited.
        assert!(checker(deep + 1).discovery(property.sentence()).is_some(), "{fence:?}");
        assert!(checker(deep).discovery(property.sentence()).is_none(), "{fence:?}");
    }
}
