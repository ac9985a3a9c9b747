//! The same models, checked by `stateright`: another explorer, the same states and the same verdicts.

use std::hash::Hash;

use stateright::Checker;

use crate::explorer::{CheckedProperty, Graph, Keep, Model, Mutant};
use crate::flow::Flow;
use crate::hold::HeldCatchUp;
use crate::hold::scenarios as holds;
use crate::overlap::Job;
use crate::protocol::fences::{Fence, Fences};
use crate::protocol::scenarios::{SMALL, without_fence};
use crate::protocol::{Bounds, Protocol};

/// A model in stateright's form.
struct SecondOpinion<M>(M);

impl<M> stateright::Model for SecondOpinion<M>
where
    M: Model + Sync + Send + 'static,
    M::State: Send + Sync + Hash,
{
    type State = M::State;
    type Action = M::Action;

    fn init_states(&self) -> Vec<M::State> {
        vec![self.0.canonical(self.0.initial_state())]
    }

    fn actions(&self, _: &M::State, actions: &mut Vec<M::Action>) {
        actions.extend(self.0.actions());
    }

    fn next_state(&self, state: &M::State, action: M::Action) -> Option<M::State> {
        self.0.step(state, action).ok().flatten().map(|next| self.0.canonical(next))
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        // A property is a function without a closure, so each has its place in the list as a constant.
        fn holds<M: Model, const N: usize>(_: &SecondOpinion<M>, state: &M::State) -> bool {
            M::Property::ALL.get(N).is_none_or(|property| !property.is_broken(state))
        }
        let conditions = [
            holds::<M, 0>,
            holds::<M, 1>,
            holds::<M, 2>,
            holds::<M, 3>,
            holds::<M, 4>,
            holds::<M, 5>,
            holds::<M, 6>,
            holds::<M, 7>,
            holds::<M, 8>,
            holds::<M, 9>,
        ];
        assert!(M::Property::ALL.len() <= conditions.len(), "a property is not checked");
        let names = M::Property::ALL.iter().map(|property| property.sentence());
        names
            .zip(conditions)
            .map(|(name, condition)| stateright::Property::always(name, condition))
            .collect()
    }
}

fn agree<M>(model: M)
where
    M: Model + Sync + Send + 'static,
    M::State: Send + Sync,
{
    let ours = Graph::explore(&model, Keep::States).expect("nothing wrong").report();
    let name = format!("{model:?}");
    let theirs = stateright::Model::checker(SecondOpinion(model)).spawn_bfs().join();
    theirs.assert_properties();
    assert_eq!(theirs.unique_state_count(), ours.states, "{name}");
    // It counts the first state as well as the steps.
    assert_eq!(theirs.state_count() as u64, ours.steps + 1, "{name}");
}

#[test]
fn stateright_finds_the_same_states_and_no_violation() {
    for (faults, people) in [(1, 0), (0, 0)] {
        let bounds = Bounds { faults, people, ..SMALL[0].bounds };
        agree(Protocol { bounds, fences: Fences::ALL });
    }
}

#[test]
fn stateright_finds_the_same_states_of_several_executions_and_of_held_catch_up() {
    Job::BOTH.into_iter().for_each(agree);
    Flow::ALL.into_iter().for_each(agree);
    agree(HeldCatchUp::new(holds::SMALL[0]));
}

#[test]
fn stateright_finds_the_violation_without_a_fence_at_the_same_depth() {
    for fence in [Fence::Lease, Fence::State] {
        let Mutant { model: protocol, breaks: property, .. } = without_fence(fence);
        let ours = Graph::explore(&protocol, Keep::States).expect_err("a counterexample");
        let depth = std::num::NonZeroUsize::new(ours.history.steps.len() + 1);
        let deep = depth.map_or(1, std::num::NonZeroUsize::get);
        let checker = |depth| {
            let model = SecondOpinion(protocol);
            stateright::Model::checker(model).target_max_depth(depth).spawn_bfs().join()
        };
        // A history of this many steps ends in a state of one more depth, which must be visited.
        assert!(checker(deep + 1).discovery(property.sentence()).is_some(), "{fence:?}");
        assert!(checker(deep).discovery(property.sentence()).is_none(), "{fence:?}");
    }
}
