//! Held catch-up as a model for the explorer.

use super::{
    Action, Bounds, FIRINGS, JOBS, Job, OPERATORS, Operator, PLANNERS, Planner, Plans, Property,
    World, trace,
};
use crate::explorer::{History, Model, Refused};

/// The model within bounds, with the results of the real planning functions.
#[derive(Clone, Debug)]
pub struct HeldCatchUp {
    bounds: Bounds,
    plans: Plans,
}

impl HeldCatchUp {
    /// Calls the planning functions once for every result that the model needs.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, plans: Plans::new(bounds.policy) }
    }
}

impl Model for HeldCatchUp {
    type State = World;
    type Action = Action;
    /// No fairness is needed: the one question is whether an end can be reached.
    type Actor = ();
    type Property = Property;

    const NAME: &'static str = "held catch-up";

    fn check_name(&self) -> String {
        format!("`{}`", self.bounds.policy.as_str())
    }

    fn bounds_text(&self) -> String {
        let many = |count: usize, what: &str| match count {
            0 => format!("no {what}"),
            1 => format!("one {what}"),
            2 => format!("two {what}s"),
            _ => format!("three {what}s"),
        };
        let Bounds { jobs, planners, operators, jumps, deaths, .. } = self.bounds;
        format!(
            "{}, {}, {}, any {}, {}",
            many(jobs, "job"),
            many(planners, "planner"),
            many(operators, "operator"),
            many(jumps.into(), "jump"),
            if deaths == 0 { "no death" } else { "any death" },
        )
    }

    fn initial_state(&self) -> World {
        let nothing =
            Job { cursor: FIRINGS as u8, executed: u8::MAX >> (8 - FIRINGS), ..Job::default() };
        let mut jobs = [nothing; JOBS];
        jobs[..self.bounds.jobs].fill(Job::default());
        World {
            clock: 0,
            high: 0,
            seen: 0,
            holds: 0,
            jobs,
            planners: [Planner::default(); PLANNERS],
            operators: [Operator::default(); OPERATORS],
            jumps: self.bounds.jumps,
            deaths: self.bounds.deaths,
            hold_is_due: false,
            needless: false,
            unasked: false,
        }
    }

    fn actions(&self) -> Vec<Action> {
        self.bounds.actions()
    }

    fn step(&self, world: &World, action: Action) -> Result<Option<World>, Refused> {
        Ok(self.bounds.apply(&self.plans, world, action))
    }

    fn canonical(&self, mut world: World) -> World {
        // Planners and operators differ by name only.
        world.planners[..self.bounds.planners].sort_unstable();
        world.operators[..self.bounds.operators].sort_unstable();
        world
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
