//! One breadth-first explorer for every model of this crate.
//!
//! A [`Model`] says where histories begin, which actions there are, what each makes of a state, and what must hold.
//! [`check`] then visits every state that any order of actions leads to, and answers with the numbers of the graph or
//! with a [`Counterexample`], whose history is a shortest one.
//!
//! Every state stays in memory with the edges between undisturbed steps: safety is a question to each state alone,
//! liveness is a question to the edges. See [`graph`] and [`liveness`].

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
    /// One thing that happens.
    type Action: Copy + Eq + Debug;
    /// The process, queue or timer that acts, as far as fairness tells them apart.
    type Actor: Copy + Eq + Debug;
    /// What must hold.
    type Property: CheckedProperty<Self::State>;

    /// What the model is about, as pages and files call it.
    const NAME: &'static str;

    /// What tells this check from the model's others, as a word.
    fn check_name(&self) -> String;

    /// How far the check goes, for people.
    fn bounds_text(&self) -> String;

    /// The one state in which every history begins.
    fn initial_state(&self) -> Self::State;

    /// Every action, in an order that never changes: of several shortest histories, the order picks one.
    fn actions(&self) -> Vec<Self::Action>;

    /// What `action` makes of `state`; `None` if it cannot happen there.
    ///
    /// # Errors
    ///
    /// [`Refused`] if only a bound of the check keeps it from happening.
    fn step(
        &self,
        state: &Self::State,
        action: Self::Action,
    ) -> Result<Option<Self::State>, Refused>;

    /// The one state that stands for `state` and all that no property can tell from it.
    #[must_use]
    fn canonical(&self, state: Self::State) -> Self::State {
        state
    }

    /// `state` without what has no effect any more. Unlike [`Self::canonical`], it renames nobody, so histories show it.
    #[must_use]
    fn without_ineffective(&self, state: Self::State) -> Self::State {
        state
    }

    /// Whether the action comes from outside: a fault, or a person. Liveness assumes that these stop.
    fn is_disturbance(action: Self::Action) -> bool;

    /// Whether the bounds still allow a disturbance in `state`. `true` is always right; `false` saves the attempts.
    fn allows_disturbance(&self, _state: &Self::State) -> bool {
        true
    }

    /// Who takes the action.
    fn actor(action: Self::Action) -> Self::Actor;

    /// Whether everything has come to its end in `state`.
    fn has_ended(state: &Self::State) -> bool;

    /// The first violation of a liveness property other than that an end stays reachable, with a state of it.
    fn liveness_violation(&self, _graph: &Graph<Self>) -> Option<(Self::Property, Id)> {
        None
    }

    /// The history in words: one line for each action.
    fn describe(&self, history: &History<Self>) -> Vec<String>;
}

/// What must hold, of each state by itself or of where states lead.
pub trait CheckedProperty<S>: Copy + Eq + Debug + 'static {
    /// All of them, in the order in which the documentation lists them and a state is judged.
    const ALL: &'static [Self];
    /// From every state an end can be reached without disturbances.
    const END_REACHABLE: Self;

    /// As the documentation says it.
    fn sentence(self) -> &'static str;

    /// Whether `state` breaks it; `false` for what a single state cannot show.
    fn is_broken(self, state: &S) -> bool;
}

/// A bound of the check refuses the step, such as that on the copies of a ticket in one queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused;

/// The size of a graph in which nothing is wrong.
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

/// A model that must fail, because something is missing.
#[derive(Clone, Debug)]
pub struct Mutant<M: Model> {
    /// What is missing, as a heading.
    pub heading: String,
    /// What that is, or does, as a sentence.
    pub explanation: &'static str,
    /// The model without it.
    pub model: M,
    /// The property that its shortest counterexample breaks.
    pub breaks: M::Property,
}

/// Uses one up, if there is any left.
pub(crate) const fn take(left: &mut u8) -> bool {
    let any = *left > 0;
    *left = left.saturating_sub(1);
    any
}
