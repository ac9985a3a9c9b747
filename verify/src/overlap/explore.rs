//! Every state of a job's executions, breadth first.

use indexmap::IndexMap;

use super::{Action, Job, Property, World};
use crate::hasher::BuildFastHasher;

/// What was found where nothing is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Different states.
    pub states: usize,
    /// Steps from one to another.
    pub steps: u64,
    /// The longest of the shortest histories.
    pub depth: usize,
}

/// A property, and a shortest history that breaks it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// What is broken.
    pub property: Property,
    /// Each action, with what it led to.
    pub history: Vec<(Action, World)>,
}

/// States in the order of their distance: how each was first reached.
type States = IndexMap<World, Option<(usize, Action)>, BuildFastHasher>;

/// Looks at all of it.
///
/// # Errors
///
/// The first thing that is broken.
pub fn explore(job: &Job) -> Result<Found, Box<Broken>> {
    let actions = Action::all();
    let mut states = States::default();
    states.insert(job.start(), None);
    // Where a state can be reached from without disturbances.
    let mut back: Vec<Vec<u32>> = vec![Vec::new()];
    let (mut at, mut steps, mut depth) = (0, 0, vec![0]);
    while let Some((&world, _)) = states.get_index(at) {
        for &action in &actions {
            let Some(next) = job.step(&world, action) else { continue };
            steps += 1;
            let (to, new) = match states.get_index_of(&next) {
                Some(known) => (known, false),
                None => (states.insert_full(next, Some((at, action))).0, true),
            };
            if new {
                back.push(Vec::new());
                depth.push(depth[at] + 1);
                let broken = Property::ALL.into_iter().find(|it| it.is_broken(&next));
                if let Some(property) = broken {
                    return Err(Box::new(Broken { property, history: history(&states, to) }));
                }
            }
            if !action.is_disturbance() {
                back[to].push(at as u32);
            }
        }
        at += 1;
    }
    if let Some(stuck) = first_without_an_end(&states, &back) {
        let property = Property::EndReachable;
        return Err(Box::new(Broken { property, history: history(&states, stuck) }));
    }
    Ok(Found { states: states.len(), steps, depth: depth.last().copied().unwrap_or(0) })
}

fn first_without_an_end(states: &States, back: &[Vec<u32>]) -> Option<usize> {
    let mut ends: Vec<bool> = states.keys().map(World::is_ended).collect();
    let mut left: Vec<usize> = (0..ends.len()).filter(|state| ends[*state]).collect();
    while let Some(state) = left.pop() {
        for &from in &back[state] {
            if !std::mem::replace(&mut ends[from as usize], true) {
                left.push(from as usize);
            }
        }
    }
    ends.iter().position(|ends| !ends)
}

fn history(states: &States, mut at: usize) -> Vec<(Action, World)> {
    let mut history = Vec::new();
    while let Some((world, Some((from, action)))) = states.get_index(at) {
        history.push((*action, *world));
        at = *from;
    }
    history.reverse();
    history
}
