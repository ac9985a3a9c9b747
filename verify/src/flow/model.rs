//! A flow as a model for the explorer.

use sexton_model::state::State;

use super::{Action, Flow, MEMBERS, Member, Property, SESSIONS, UPSTREAM, World, trace};
use crate::explorer::{History, Model, Refused};

impl Model for Flow {
    type State = World;
    type Action = Action;
    /// No fairness is needed: the one question is whether an end can be reached.
    type Actor = ();
    type Property = Property;

    const NAME: &'static str = "members of one flow";

    fn check_name(&self) -> String {
        format!("`{}`", self.runs_when.as_str())
    }

    fn bounds_text(&self) -> String {
        "four members, two sessions, any three actions of people".to_owned()
    }

    fn initial_state(&self) -> World {
        let member = |number: usize| Member {
            state: State::Pending,
            waits_for: UPSTREAM[number].len() as u8,
            unsuccessful: 0,
            decided: UPSTREAM[number].is_empty(),
            counted: false,
            decisions: 0,
            ends: (false, false),
        };
        World {
            members: std::array::from_fn(member),
            open: MEMBERS as u8,
            sessions: [None; SESSIONS],
            people: self.people,
            early: false,
        }
    }

    fn actions(&self) -> Vec<Action> {
        Action::all()
    }

    fn step(&self, world: &World, action: Action) -> Result<Option<World>, Refused> {
        Ok(self.apply(world, action))
    }

    fn is_disturbance(action: Action) -> bool {
        action.is_disturbance()
    }

    fn actor(_: Action) {}

    fn has_ended(world: &World) -> bool {
        world.is_ended()
    }

    fn describe(&self, history: &History<Self>) -> Vec<String> {
        trace::describe(history)
    }
}
