//! The whole graph of what can happen, explored breadth first.
//!
//! Stateright, which checks the same model in the tests, keeps fingerprints of states and no edges.
//! That is enough for what a single state shows; whether an end stays reachable, and whether an
//! exchange can go on for ever, are questions to the edges. So this keeps the states themselves (no
//! two can be taken for one another) and, where they are asked for, the edges without disturbances.
//! The first state that breaks a property has a shortest history, since states are found in order of
//! their distance.

use indexmap::IndexSet;

use crate::action::{Action, Actor};
use crate::hasher::BuildFastHasher;
use crate::properties::Property;
use crate::protocol::Protocol;
use crate::world::World;

/// A state's number.
pub type Id = u32;

/// The states, how each was first reached, and where each leads without disturbances.
#[derive(Debug)]
pub struct Graph {
    states: IndexSet<World, BuildFastHasher>,
    /// From which state each was reached first; the first one from itself.
    reached: Vec<Id>,
    /// Where the edges of each state begin in `edges`.
    offsets: Vec<u32>,
    edges: Vec<(Id, Actor)>,
    /// Steps of any kind, disturbances included.
    pub transitions: u64,
    /// Steps that the bound on copies refused.
    pub refused: u64,
    /// The longest of the shortest histories.
    pub depth: u32,
}

/// A history: actions, each with the state it led to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct History {
    /// Where it begins.
    pub start: World,
    /// What happened.
    pub steps: Vec<(Action, World)>,
}

/// A property and a history that breaks it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counterexample {
    /// What is broken.
    pub property: Property,
    /// How.
    pub history: History,
}

/// What to explore for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// States only.
    States,
    /// States and the edges without disturbances.
    Edges,
}

impl Graph {
    /// Explores all of `protocol`, up to the first state that breaks a property.
    ///
    /// # Errors
    ///
    /// The counterexample, with a shortest history.
    pub fn explore(protocol: &Protocol, keep: Keep) -> Result<Self, Box<Counterexample>> {
        Self::explore_for(protocol, keep, &Property::OF_STATES)
    }

    /// The same, up to the first state that breaks one of `properties`: without a fence one of them may
    /// hide another, which takes a longer history to break.
    ///
    /// # Errors
    ///
    /// The counterexample, with a shortest history.
    pub fn explore_for(
        protocol: &Protocol,
        keep: Keep,
        properties: &[Property],
    ) -> Result<Self, Box<Counterexample>> {
        let actions = Action::all();
        let natural = actions.iter().position(|action| action.is_disturbance()).unwrap_or(0);
        let start = protocol.canonical(protocol.start());
        let mut graph = Self {
            states: IndexSet::default(),
            reached: vec![0],
            offsets: vec![0],
            edges: Vec::new(),
            transitions: 0,
            refused: 0,
            depth: 0,
        };
        graph.states.insert(start);
        let mut level_ends = 1;
        let mut at = 0;
        while at < graph.states.len() {
            if at == level_ends {
                graph.depth += 1;
                level_ends = graph.states.len();
            }
            let world = graph.states[at];
            let undisturbed = world.faults == 0 && world.people == 0;
            let possible = if undisturbed { &actions[..natural] } else { &actions[..] };
            for &action in possible {
                let next = match protocol.step(&world, action) {
                    Ok(Some(next)) => protocol.canonical(next),
                    Ok(None) => continue,
                    Err(_) => {
                        graph.refused += 1;
                        continue;
                    }
                };
                graph.transitions += 1;
                let (id, new) = graph.states.insert_full(next);
                if new {
                    graph.reached.push(at as Id);
                    let broken = properties.iter().find(|property| property.is_broken(&next));
                    if let Some(&property) = broken {
                        let history = graph.history(protocol, id as Id);
                        return Err(Box::new(Counterexample { property, history }));
                    }
                }
                if keep == Keep::Edges && !action.is_disturbance() {
                    graph.edges.push((id as Id, action.actor()));
                }
            }
            graph.offsets.push(graph.edges.len() as u32);
            at += 1;
        }
        Ok(graph)
    }

    /// All states, in order of their distance from the first.
    pub fn states(&self) -> impl Iterator<Item = &World> {
        self.states.iter()
    }

    /// How many states.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether there are none, which is never.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// A state.
    pub fn state(&self, id: Id) -> &World {
        &self.states[id as usize]
    }

    /// Where a state leads without disturbances, and who leads there.
    pub fn edges(&self, id: Id) -> &[(Id, Actor)] {
        let at = id as usize;
        &self.edges[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }

    /// A shortest history of a state, as it happens to workers and schedulers that keep their names:
    /// each step is the first action that leads to the next state or one like it.
    pub fn history(&self, protocol: &Protocol, mut id: Id) -> History {
        let mut path = Vec::new();
        while id != 0 {
            path.push(id);
            id = self.reached[id as usize];
        }
        let start = protocol.start();
        let (mut world, mut steps) = (start, Vec::with_capacity(path.len()));
        for id in path.into_iter().rev() {
            let wanted = self.state(id);
            let step = Action::all().into_iter().find_map(|action| {
                let next = protocol.settled(protocol.step(&world, action).ok().flatten()?);
                (protocol.canonical(next) == *wanted).then_some((action, next))
            });
            // A state was reached from one like this world, so one of the actions leads there.
            let Some((action, next)) = step else { break };
            steps.push((action, next));
            world = next;
        }
        History { start, steps }
    }
}
