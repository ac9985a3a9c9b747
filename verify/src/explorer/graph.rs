//! The whole graph of reachable states, explored breadth first.
//!
//! Stateright, which checks the same models in the tests, keeps fingerprints of states and no edges. That suffices
//! for properties of single states; whether an end stays reachable, and whether an exchange can go on for ever,
//! concern the edges. So this keeps the states themselves (without collisions) and, if [`Keep`] says so, the edges
//! without disturbances. The first state that breaks a property has a shortest history, since states are found in
//! order of their distance.

use indexmap::IndexSet;

use super::hasher::BuildFastHasher;
use super::{CheckedProperty, Model, Report};

/// A state's number.
pub type Id = u32;

/// The states, how each was first reached, and its edges without disturbances.
#[derive(Debug)]
pub struct Graph<M: Model> {
    states: IndexSet<M::State, BuildFastHasher>,
    /// The state from which each was reached first; the first one from itself.
    reached_from: Vec<Id>,
    /// Where the edges of each state begin in `edges`.
    offsets: Vec<u32>,
    edges: Vec<(Id, M::Actor)>,
    steps: u64,
    refused: u64,
    depth: u32,
}

/// A history: actions, each with the state it led to.
#[derive(Debug)]
pub struct History<M: Model> {
    /// Where it begins.
    pub start: M::State,
    /// The actions and their resulting states.
    pub steps: Vec<(M::Action, M::State)>,
}

/// A property and a history that breaks it.
#[derive(Debug)]
pub struct Counterexample<M: Model> {
    /// The broken property.
    pub property: M::Property,
    /// The history.
    pub history: History<M>,
}

/// The parts of the graph that the explorer keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// States only.
    States,
    /// States and the edges without disturbances.
    Edges,
}

impl<M: Model> Graph<M> {
    /// Explores all of `model`, up to the first state that breaks a property.
    ///
    /// # Errors
    ///
    /// The counterexample, with a shortest history.
    pub fn explore(model: &M, keep: Keep) -> Result<Self, Box<Counterexample<M>>> {
        Self::explore_for(model, keep, M::Property::ALL)
    }

    /// Explores up to the first state that breaks one of `properties`: without a fence one property may hide another,
    /// which takes a longer history to break.
    ///
    /// # Errors
    ///
    /// The counterexample, with a shortest history.
    pub fn explore_for(
        model: &M,
        keep: Keep,
        properties: &[M::Property],
    ) -> Result<Self, Box<Counterexample<M>>> {
        let actions = model.actions();
        let undisturbed: Vec<_> =
            actions.iter().copied().filter(|action| !M::is_disturbance(*action)).collect();
        let mut graph = Self {
            states: IndexSet::default(),
            reached_from: vec![0],
            offsets: vec![0],
            edges: Vec::new(),
            steps: 0,
            refused: 0,
            depth: 0,
        };
        graph.states.insert(model.canonical(model.initial_state()));
        let mut level_ends = 1;
        let mut at = 0;
        while let Some(&state) = graph.states.get_index(at) {
            if at == level_ends {
                graph.depth += 1;
                level_ends = graph.states.len();
            }
            let possible = if model.allows_disturbance(&state) { &actions } else { &undisturbed };
            for &action in possible {
                let next = match model.step(&state, action) {
                    Ok(Some(next)) => model.canonical(next),
                    Ok(None) => continue,
                    Err(_) => {
                        graph.refused += 1;
                        continue;
                    }
                };
                graph.steps += 1;
                let (id, new) = graph.states.insert_full(next);
                if new {
                    graph.reached_from.push(at as Id);
                    let broken = properties.iter().find(|property| property.is_broken(&next));
                    if let Some(&property) = broken {
                        let history = graph.history(model, id as Id);
                        return Err(Box::new(Counterexample { property, history }));
                    }
                }
                if keep == Keep::Edges && !M::is_disturbance(action) {
                    graph.edges.push((id as Id, M::actor(action)));
                }
            }
            graph.offsets.push(graph.edges.len() as u32);
            at += 1;
        }
        Ok(graph)
    }

    /// Returns its size.
    pub fn report(&self) -> Report {
        let Self { steps, depth, refused, .. } = *self;
        Report { states: self.states.len(), steps, depth, refused }
    }

    /// Yields all states, in order of their distance from the first.
    pub fn states(&self) -> impl Iterator<Item = &M::State> {
        self.states.iter()
    }

    /// Returns the state of this number.
    pub fn state(&self, id: Id) -> &M::State {
        &self.states[id as usize]
    }

    /// Returns a state's edges without disturbances, with their actors.
    pub fn edges(&self, id: Id) -> &[(Id, M::Actor)] {
        let at = id as usize;
        &self.edges[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }

    /// Returns a shortest history of a state, in which every process keeps its name: each step is the first action
    /// that leads to the next state or to one with the same canonical state.
    pub fn history(&self, model: &M, mut id: Id) -> History<M> {
        let mut path = Vec::new();
        while id != 0 {
            path.push(id);
            id = self.reached_from[id as usize];
        }
        let start = model.initial_state();
        let (mut state, mut steps) = (start, Vec::with_capacity(path.len()));
        for id in path.into_iter().rev() {
            let wanted = self.state(id);
            let step = model.actions().into_iter().find_map(|action| {
                let next = model.step(&state, action).ok().flatten()?;
                let next = model.without_ineffective(next);
                (model.canonical(next) == *wanted).then_some((action, next))
            });
            // Both states have the same canonical state, so one action leads to the next.
            let Some((action, next)) = step else { break };
            steps.push((action, next));
            state = next;
        }
        History { start, steps }
    }
}
