//! Liveness: the paths between states without further disturbances.
//!
//! - **An end stays reachable** (AG EF): backwards from all states that have ended, along edges without disturbances,
//!   [`first_without_an_end`] meets every state.
//! - **No exchange goes on for ever**: among the states that have not ended there is no strongly connected component
//!   in which a fair history could stay. A history is fair if every actor that can act without a break acts some
//!   time. So a component is a trap if each actor either cannot act in one of its states or has a step that stays
//!   inside: then a history that keeps visiting all of it is fair and never ends ([`first_of_a_trap`]). Together with
//!   the first this means that every fair history without further disturbances ends.
//! - **A property holds in the end**: in the components without outgoing edges ([`first_at_rest_where`]).

use super::Model;
use super::graph::{Graph, Id};

/// Returns the state nearest to the start from which no end can be reached.
pub fn first_without_an_end<M: Model>(graph: &Graph<M>) -> Option<Id> {
    let mut reached: Vec<bool> = graph.states().map(M::has_ended).collect();
    let count = reached.len();
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
    let mut open: Vec<Id> = (0..count as Id).filter(|id| reached[*id as usize]).collect();
    while let Some(id) = open.pop() {
        let range = starts[id as usize] as usize..starts[id as usize + 1] as usize;
        for &from in &before[range] {
            if !std::mem::replace(&mut reached[from as usize], true) {
                open.push(from);
            }
        }
    }
    reached.iter().position(|reached| !reached).map(|id| id as Id)
}

/// Returns the state nearest to the start of a component without an end, in which a history can stay although each of
/// the `fair` actors acts some time.
pub fn first_of_a_trap<M: Model>(graph: &Graph<M>, fair: &[M::Actor]) -> Option<Id> {
    let ended: Vec<bool> = graph.states().map(M::has_ended).collect();
    Components::of(graph, |id| !ended[id as usize]).trap(graph, fair)
}

/// Returns the state nearest to the start for which `such` holds, of a component without outgoing edges.
pub fn first_at_rest_where<M: Model>(
    graph: &Graph<M>,
    such: impl Fn(&M::State) -> bool,
) -> Option<Id> {
    let components = Components::of(graph, |_| true);
    let last = components.iter().filter(|(number, members)| {
        let mut edges = members.iter().flat_map(|id| graph.edges(*id));
        edges.all(|(to, _)| components.of[*to as usize] == *number)
    });
    let such = |id: &Id| such(graph.state(*id));
    last.filter_map(|(_, members)| members.iter().copied().filter(such).min()).min()
}

/// The strongly connected components of a part of the graph.
struct Components {
    /// The component of each state; `NONE`: not of this part.
    of: Vec<u32>,
    /// Members, component after component, and where each component begins.
    members: Vec<Id>,
    starts: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Components {
    /// Tarjan's algorithm, with an explicit stack: histories are longer than a thread's stack.
    fn of<M: Model>(graph: &Graph<M>, part: impl Fn(Id) -> bool) -> Self {
        let count = graph.report().states;
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

    fn trap<M: Model>(&self, graph: &Graph<M>, fair: &[M::Actor]) -> Option<Id> {
        let traps = self.iter().filter(|(number, members)| {
            let inside = |id: Id| self.of[id as usize] == *number;
            let cycle = members.iter().any(|id| graph.edges(*id).iter().any(|(to, _)| inside(*to)));
            // A state without edges has no end either, and the other check finds it.
            cycle && fair.iter().all(|actor| may_stay(graph, members, *actor, inside))
        });
        traps.filter_map(|(_, members)| members.iter().min().copied()).min()
    }
}

/// Returns whether `actor` does not force a history out: it cannot act somewhere, or can act inside.
fn may_stay<M: Model>(
    graph: &Graph<M>,
    members: &[Id],
    actor: M::Actor,
    inside: impl Fn(Id) -> bool,
) -> bool {
    let steps = |id: Id| graph.edges(id).iter().filter(move |(_, by)| *by == actor);
    members.iter().any(|id| steps(*id).next().is_none() || steps(*id).any(|(to, _)| inside(*to)))
}
