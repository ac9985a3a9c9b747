//! The executions of one job as a model for the explorer.

use super::{Action, EXECUTIONS, Execution, Job, PLANNERS, Planner, Property, World, trace};
use crate::explorer::{History, Model, Refused};

impl Model for Job {
    type State = World;
    type Action = Action;
    /// No fairness is needed: the one question is whether an end can be reached.
    type Actor = ();
    type Property = Property;

    const NAME: &'static str = "executions of one job";

    fn check_name(&self) -> String {
        format!("`{}`", self.policy.as_str())
    }

    fn bounds_text(&self) -> String {
        "three executions, two schedulers, any death of a worker, any two actions of people"
            .to_owned()
    }

    fn initial_state(&self) -> World {
        World {
            executions: [Execution::NONE; EXECUTIONS],
            planners: [Planner::Idle; PLANNERS],
            faults: self.faults,
            people: self.people,
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
