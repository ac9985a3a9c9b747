//! Every state of jobs, planners, operators and the clock, breadth first.

use indexmap::IndexMap;

use super::{Action, Bounds, Plans, Property, World};
use crate::hasher::BuildFastHasher;

/// What was found where nothing is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Different states.
    pub states: usize,
    /// Steps from one to another.
    pub steps: u64,
    /// The longest of the shortest histories.
    pub depth: u32,
}

/// A property, and a shortest history that breaks it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// What is broken.
    pub property: Property,
    /// Where it begins.
    pub start: World,
    /// Each action, with what it led to.
    pub history: Vec<(Action, World)>,
}

/// States in the order of their distance: from which each was first reached, and how far that is.
type States = IndexMap<World, (u32, u32), BuildFastHasher>;

/// Where each state can be reached from without disturbances: a list for each, threaded through one
/// vector.
struct Back {
    last: Vec<u32>,
    steps: Vec<(u32, u32)>,
}

const NONE: u32 = u32::MAX;

/// Looks at all of it.
///
/// # Errors
///
/// The first thing that is broken.
pub fn explore(bounds: &Bounds) -> Result<Found, Box<Broken>> {
    let plans = Plans::new(bounds.policy);
    let actions = bounds.actions();
    let mut states = States::default();
    states.insert(bounds.canonical(bounds.start()), (0, 0));
    let mut back = Back { last: vec![NONE], steps: Vec::new() };
    let (mut at, mut steps) = (0, 0);
    let fail = |states: &States, property, to| {
        let history = history(bounds, &plans, states, to);
        Err(Box::new(Broken { property, start: bounds.start(), history }))
    };
    while let Some((&world, &(_, distance))) = states.get_index(at) {
        for &action in &actions {
            let Some(next) = bounds.step(&plans, &world, action) else { continue };
            let next = bounds.canonical(next);
            steps += 1;
            let to = if let Some(known) = states.get_index_of(&next) {
                known
            } else {
                let (new, _) = states.insert_full(next, (at as u32, distance + 1));
                back.last.push(NONE);
                if let Some(property) = Property::ALL.into_iter().find(|it| it.is_broken(&next)) {
                    return fail(&states, property, new);
                }
                new
            };
            if !action.is_disturbance() {
                back.steps.push((at as u32, back.last[to]));
                back.last[to] = (back.steps.len() - 1) as u32;
            }
        }
        at += 1;
    }
    if let Some(stuck) = first_without_an_end(&states, &back) {
        return fail(&states, Property::EndReachable, stuck);
    }
    let depth = states.last().map_or(0, |(_, (_, distance))| *distance);
    Ok(Found { states: states.len(), steps, depth })
}

fn first_without_an_end(states: &States, back: &Back) -> Option<usize> {
    let mut ends: Vec<bool> = states.keys().map(World::is_ended).collect();
    let mut left: Vec<usize> = (0..ends.len()).filter(|state| ends[*state]).collect();
    while let Some(state) = left.pop() {
        let mut step = back.last[state];
        while step != NONE {
            let (from, before) = back.steps[step as usize];
            if !std::mem::replace(&mut ends[from as usize], true) {
                left.push(from as usize);
            }
            step = before;
        }
    }
    ends.iter().position(|ends| !ends)
}

/// As it happens to planners and operators that keep their names: each step is the first action that
/// leads to the next state or one like it.
fn history(bounds: &Bounds, plans: &Plans, states: &States, mut at: usize) -> Vec<(Action, World)> {
    let mut path = Vec::new();
    while let Some((wanted, (from, _))) = states.get_index(at).filter(|_| at != 0) {
        path.push(*wanted);
        at = *from as usize;
    }
    let (mut world, mut history) = (bounds.start(), Vec::with_capacity(path.len()));
    for wanted in path.into_iter().rev() {
        let step = bounds.actions().into_iter().find_map(|action| {
            let next = bounds.step(plans, &world, action)?;
            (bounds.canonical(next) == wanted).then_some((action, next))
        });
        // A state was reached from one like this world, so one of the actions leads there.
        let Some((action, next)) = step else { break };
        history.push((action, next));
        world = next;
    }
    history
}
