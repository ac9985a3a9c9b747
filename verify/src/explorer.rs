//! One breadth-first explorer for every model of this crate.
//!
//! A [`Model`] defines the initial state, the actions, their effects on a state, and the properties. [`check`] then
//! visits every state that any order of actions leads to, and returns the numbers of the graph or a
//! [`Counterexample`], whose history is a shortest one.
//!
//! Every state stays in memory with the edges between undisturbed steps: safety concerns single states, liveness
//! concerns the edges. See [`graph`] and [`liveness`].

pub mod graph;
mod hasher;
pub mod liveness;

use std::fmt::Debug;
use std::hash::Hash;

pub use graph::{Counterexample, Graph, History, Id, Keep};

/// A model that the explorer can exhaust: a value with the bounds of one check.
pub trait Model: Debug + Sized {
    /// One state of everything that is modelled.
    type State: Copy + Eq + Hash + Debug;
    /// One action.
    type Action: Copy + Eq + Debug;
    /// The process, queue or timer that acts, as far as fairness distinguishes them.
    type Actor: Copy + Eq + Debug;
    /// A property that must hold.
    type Property: CheckedProperty<Self::State>;

    /// The model's name on pages and in files.
    const NAME: &'static str;

    /// Returns a word that distinguishes this check from the model's others.
    fn check_name(&self) -> String;

    /// Describes the bounds of the check, for people.
    fn bounds_text(&self) -> String;

    /// Returns the one state in which every history begins.
    fn initial_state(&self) -> Self::State;

    /// Returns every action, in an order that never changes: of several shortest histories, the order picks one.
    fn actions(&self) -> Vec<Self::Action>;

    /// Applies `action` to `state`; `None` if it cannot happen there.
    ///
    /// # Errors
    ///
    /// [`Refused`] if only a bound of the check prevents it.
    fn step(
        &self,
        state: &Self::State,
        action: Self::Action,
    ) -> Result<Option<Self::State>, Refused>;

    /// Returns the one state that represents `state` and all that no property can distinguish from it.
    #[must_use]
    fn canonical(&self, state: Self::State) -> Self::State {
        state
    }

    /// Returns `state` without parts that have no effect any more. Unlike [`Self::canonical`], it renames no process,
    /// so histories show it.
    #[must_use]
    fn without_ineffective(&self, state: Self::State) -> Self::State {
        state
    }

    /// Returns whether the action comes from outside: a fault, or a person. Liveness assumes that these stop.
    fn is_disturbance(action: Self::Action) -> bool;

    /// Returns whether the bounds still allow a disturbance in `state`. `true` is always right; `false` saves the
    /// attempts.
    fn allows_disturbance(&self, _state: &Self::State) -> bool {
        true
    }

    /// Returns the actor of the action.
    fn actor(action: Self::Action) -> Self::Actor;

    /// Returns whether everything has ended in `state`.
    fn has_ended(state: &Self::State) -> bool;

    /// Returns the first violation of a liveness property, except that an end stays reachable, with a state of it.
    fn liveness_violation(&self, _graph: &Graph<Self>) -> Option<(Self::Property, Id)> {
        None
    }

    /// Describes the history in words: one line for each action.
    fn describe(&self, history: &History<Self>) -> Vec<String>;
}

/// A property of single states, or of the paths between them.
pub trait CheckedProperty<S>: Copy + Eq + Debug + 'static {
    /// All properties, in the order of the documentation and of the checks.
    const ALL: &'static [Self];
    /// From every state an end can be reached without disturbances.
    const END_REACHABLE: Self;

    /// Returns the property's sentence in the documentation.
    fn sentence(self) -> &'static str;

    /// Returns whether `state` breaks it; `false` for a property that a single state cannot break.
    fn is_broken(self, state: &S) -> bool;
}

/// A bound of the check refuses the step, such as that on the copies of a ticket in one queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused;

/// The size of a graph without violations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Different states.
    pub states: usize,
    /// Steps from one to another, disturbances included.
    pub steps: u64,
    /// The longest of the shortest histories, in actions.
    pub depth: u32,
    /// Steps that a bound refused.
    pub refused: u64,
}

/// Checks every property of `model` in every state within its bounds.
///
/// # Errors
///
/// The first counterexample.
pub fn check<M: Model>(model: &M) -> Result<Report, Box<Counterexample<M>>> {
    let graph = Graph::explore(model, Keep::Edges)?;
    let stuck = liveness::first_without_an_end(&graph);
    let violation = stuck
        .map(|id| (M::Property::END_REACHABLE, id))
        .or_else(|| model.liveness_violation(&graph));
    if let Some((property, id)) = violation {
        return Err(Box::new(Counterexample { property, history: graph.history(model, id) }));
    }
    Ok(graph.report())
}

/// A model that must fail, because a part is missing.
#[derive(Clone, Debug)]
pub struct Mutant<M: Model> {
    /// The missing part, as a heading.
    pub heading: String,
    /// The part's meaning or effect, in a sentence.
    pub explanation: &'static str,
    /// The model without it.
    pub model: M,
    /// The property that its shortest counterexample breaks.
    pub breaks: M::Property,
}

/// Uses one up, if any is left.
pub(crate) const fn take(left: &mut u8) -> bool {
    let any = *left > 0;
    *left = left.saturating_sub(1);
    any
}
