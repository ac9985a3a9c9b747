//! Questions to the edges: where states lead when nothing disturbs any more.

use crate::action::Actor;
use crate::graph::{Counterexample, Graph, Id};
use crate::properties::Property;
use crate::protocol::Protocol;
use crate::world::Sweep;

/// Checks the properties that are about where states lead.
///
/// - **An end stays reachable** ([`Property::EndReachable`], AG EF): backwards from all states that
///   have ended, along edges without disturbances, every state is met.
/// - **No endless exchange** ([`Property::NoEndlessExchange`]): among the states that have not ended
///   there is no strongly connected component in which a fair history could stay. A history is fair
///   if every actor that can go on without a break goes on some time. So a component is a trap if
///   each actor either cannot go on in one of its states or has a step that stays inside: then a
///   history that keeps visiting all of it is fair and never ends. Together with the first this says
///   that every fair history without further disturbances ends.
/// - **The graveyard agrees** ([`Property::FailedQueueAgrees`]): in the components that nothing leads
///   out of, whenever the sweep is between two passes.
///
/// # Errors
///
/// The first counterexample; its history leads to a state of the trap.
pub fn check(protocol: &Protocol, graph: &Graph) -> Result<(), Box<Counterexample>> {
    let broken = |property, id| {
        Err(Box::new(Counterexample { property, history: graph.history(protocol, id) }))
    };
    if let Some(id) = without_an_end(graph) {
        return broken(Property::EndReachable, id);
    }
    let ended: Vec<bool> = graph.states().map(crate::world::World::is_ended).collect();
    let unended = Components::of(graph, |id| !ended[id as usize]);
    if let Some(id) = unended.trap(graph) {
        return broken(Property::NoEndlessExchange, id);
    }
    let all = Components::of(graph, |_| true);
    if let Some(id) = all.disagreement(graph) {
        return broken(Property::FailedQueueAgrees, id);
    }
    Ok(())
}

/// The state nearest to the start from which no end can be reached.
fn without_an_end(graph: &Graph) -> Option<Id> {
    let count = graph.len();
    let mut starts = vec![0_u32; count + 1];
    for id in 0..count as Id {
        for &(to, _) in graph.edges(id) {
            starts[to as usize + 1] += 1;
        }
    }
    for at in 0..count {
        starts[at + 1] += starts[at];
    }
    let mut filled = starts.clone();
    let mut before = vec![0; starts[count] as usize];
    for id in 0..count as Id {
        for &(to, _) in graph.edges(id) {
            before[filled[to as usize] as usize] = id;
            filled[to as usize] += 1;
        }
    }
    let mut met: Vec<bool> = graph.states().map(crate::world::World::is_ended).collect();
    let mut open: Vec<Id> = (0..count as Id).filter(|id| met[*id as usize]).collect();
    while let Some(id) = open.pop() {
        let range = starts[id as usize] as usize..starts[id as usize + 1] as usize;
        for &from in &before[range] {
            if !std::mem::replace(&mut met[from as usize], true) {
                open.push(from);
            }
        }
    }
    met.iter().position(|met| !met).map(|id| id as Id)
}

/// The strongly connected components of a part of the graph.
struct Components {
    /// Of each state; `NONE`: not of this part.
    of: Vec<u32>,
    /// Members, component after component, and where each component begins.
    members: Vec<Id>,
    starts: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Components {
    /// Tarjan's algorithm, with a stack of its own: histories are longer than a thread's stack.
    fn of(graph: &Graph, part: impl Fn(Id) -> bool) -> Self {
        let count = graph.len();
        let mut found = Self { of: vec![NONE; count], members: Vec::new(), starts: vec![0] };
        let (mut index, mut low) = (vec![NONE; count], vec![0_u32; count]);
        let mut next = 0;
        let mut path: Vec<(Id, usize)> = Vec::new();
        let mut open: Vec<Id> = Vec::new();
        for root in 0..count as Id {
            if index[root as usize] != NONE || !part(root) {
                continue;
            }
            path.push((root, 0));
            while let Some((id, edge)) = path.pop() {
                let at = id as usize;
                if edge == 0 {
                    (index[at], low[at]) = (next, next);
                    next += 1;
                    open.push(id);
                }
                let edges = graph.edges(id);
                let mut deeper = None;
                for (number, &(to, _)) in edges.iter().enumerate().skip(edge) {
                    if !part(to) {
                        continue;
                    }
                    if index[to as usize] == NONE {
                        deeper = Some((number + 1, to));
                        break;
                    }
                    if found.of[to as usize] == NONE {
                        low[at] = low[at].min(index[to as usize]);
                    }
                }
                if let Some((resume, to)) = deeper {
                    path.push((id, resume));
                    path.push((to, 0));
                    continue;
                }
                if low[at] == index[at] {
                    found.close(&mut open, id);
                }
                if let Some(&(above, _)) = path.last() {
                    low[above as usize] = low[above as usize].min(low[at]);
                }
            }
        }
        found
    }

    fn close(&mut self, open: &mut Vec<Id>, root: Id) {
        let number = self.starts.len() as u32 - 1;
        while let Some(id) = open.pop() {
            self.of[id as usize] = number;
            self.members.push(id);
            if id == root {
                break;
            }
        }
        self.starts.push(self.members.len() as u32);
    }

    fn iter(&self) -> impl Iterator<Item = (u32, &[Id])> {
        self.starts.windows(2).enumerate().map(|(number, ends)| {
            (number as u32, &self.members[ends[0] as usize..ends[1] as usize])
        })
    }

    /// The state nearest to the start of a component in which a fair history can stay.
    fn trap(&self, graph: &Graph) -> Option<Id> {
        let traps = self.iter().filter(|(number, members)| {
            let inside = |id: Id| self.of[id as usize] == *number;
            let cycle = members.iter().any(|id| graph.edges(*id).iter().any(|(to, _)| inside(*to)));
            // A state that leads nowhere has no end either, and is found by that.
            cycle && Actor::FAIR.iter().all(|actor| may_stay(graph, members, *actor, inside))
        });
        traps.filter_map(|(_, members)| members.iter().min().copied()).min()
    }

    /// The nearest state, of a component that nothing leads out of, in which the queues are not what
    /// the row says.
    fn disagreement(&self, graph: &Graph) -> Option<Id> {
        let last = self.iter().filter(|(number, members)| {
            members
                .iter()
                .all(|id| graph.edges(*id).iter().all(|(to, _)| self.of[*to as usize] == *number))
        });
        let wrong = |id: &Id| {
            let world = graph.state(*id);
            world.sweep == Sweep::Idle && !world.agrees()
        };
        last.filter_map(|(_, members)| members.iter().copied().filter(wrong).min()).min()
    }
}

/// Whether `actor` does not force a history out: it cannot go on somewhere, or can go on inside.
fn may_stay(graph: &Graph, members: &[Id], actor: Actor, inside: impl Fn(Id) -> bool) -> bool {
    let steps = |id: Id| graph.edges(id).iter().filter(move |(_, by)| *by == actor);
    members.iter().any(|id| steps(*id).next().is_none() || steps(*id).any(|(to, _)| inside(*to)))
}
