//! Whether members make a flow.

use std::collections::{HashMap, HashSet};

use super::Member;
use crate::quoting::quoted;

/// The name of the execution that begins the flow of a job.
pub const START: &str = "start";
/// The most members of a flow that a program begins.
pub const MAX_MEMBERS: usize = 20_000;
/// The most pairs of which one waits for the other.
pub const MAX_EDGES: usize = 100_000;
/// The most members of a job's flow.
pub const MAX_JOB_MEMBERS: usize = 1_000;
/// The most pairs of a job's flow.
pub const MAX_JOB_EDGES: usize = 20_000;
/// The largest definition of a job's flow, in bytes of JSON: each execution of the job copies it.
pub const MAX_JOB_FLOW_BYTES: usize = 256 * 1024;
/// The longest name of a member, in bytes.
pub const MAX_NAME_BYTES: usize = 100;

/// Checks the members of a job's flow, which the job's own execution begins as [`START`]; returns the places of members
/// with what is wrong with them.
pub fn check_members(members: &[Member]) -> Vec<(usize, String)> {
    let mut problems = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, member) in members.iter().enumerate() {
        let name = member.name.as_str();
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(allowed) {
            let text = format!(
                "{} is none of 1 to {MAX_NAME_BYTES} letters, digits, _ and -",
                quoted(name)
            );
            problems.push((place, text));
        } else if name == START {
            problems.push((place, format!("{START} is the name of the job's own execution")));
        } else if places.insert(name, place).is_some() {
            problems.push((place, format!("another member is called {}", quoted(name))));
        }
    }
    for (place, member) in members.iter().enumerate() {
        let mut seen = HashSet::new();
        for name in &member.after {
            if !seen.insert(name) {
                problems.push((place, format!("after names {} twice", quoted(name))));
            } else if name != START && !places.contains_key(name.as_str()) {
                problems.push((place, format!("after names {}, which is no member", quoted(name))));
            }
        }
        if member.after.is_empty() {
            problems.push((place, format!("after is missing; write after = [\"{START}\"]")));
        }
    }
    if problems.is_empty()
        && let Some(place) = find_cycle(members, &places)
    {
        problems.push((place, "it waits for itself, through others or not".to_owned()));
    }
    let bytes = serde_json::to_string(members).map_or(0, |text| text.len());
    if bytes > MAX_JOB_FLOW_BYTES {
        let text = format!("the flow has {bytes} bytes as JSON; {MAX_JOB_FLOW_BYTES} at most");
        problems.push((0, text));
    }
    let edges: usize = members.iter().map(|member| member.after.len()).sum();
    if members.len() > MAX_JOB_MEMBERS || edges > MAX_JOB_EDGES {
        let text = format!(
            "{} members that wait for {edges} others are more than {MAX_JOB_MEMBERS} and {MAX_JOB_EDGES}",
            members.len()
        );
        problems.push((0, text));
    }
    problems
}

/// Returns a member that waits for itself: members are taken away whose upstream members are gone, until none is left.
fn find_cycle(members: &[Member], places: &HashMap<&str, usize>) -> Option<usize> {
    let mut waits_for: Vec<usize> = Vec::with_capacity(members.len());
    let mut downstream: Vec<Vec<usize>> = vec![Vec::new(); members.len()];
    for (place, member) in members.iter().enumerate() {
        let upstream = member.after.iter().filter_map(|name| places.get(name.as_str()));
        let mut number = 0;
        for above in upstream {
            downstream[*above].push(place);
            number += 1;
        }
        waits_for.push(number);
    }
    let mut free: Vec<usize> = (0..members.len()).filter(|place| waits_for[*place] == 0).collect();
    while let Some(place) = free.pop() {
        for below in &downstream[place] {
            waits_for[*below] -= 1;
            if waits_for[*below] == 0 {
                free.push(*below);
            }
        }
    }
    waits_for.iter().position(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::flow::{OnDiscard, RunsWhen};

    fn member(name: &str, after: &[&str]) -> Member {
        Member {
            name: name.to_owned(),
            job: "a.b".to_owned(),
            params: Map::new(),
            results: Map::new(),
            after: after.iter().map(ToString::to_string).collect(),
            runs_when: RunsWhen::AllSucceeded,
            on_discard: OnDiscard::Skip,
        }
    }

    #[test]
    fn a_diamond_is_a_flow() {
        let members = [
            member("left", &[START]),
            member("right", &[START]),
            member("both", &["left", "right"]),
        ];
        assert_eq!(check_members(&members), []);
    }

    #[test]
    fn what_is_no_flow_is_refused_at_its_member() {
        for (members, place, part) in [
            (vec![member("a b", &[START])], 0, "\"a b\" is none of"),
            (vec![member(START, &[START])], 0, "the job's own execution"),
            (vec![member("a", &[START]), member("a", &[START])], 1, "another member"),
            (vec![member("a", &["b"])], 0, "after names \"b\", which is no member"),
            (vec![member("a", &[START, START])], 0, "twice"),
            (vec![member("a", &[])], 0, "after is missing"),
            (
                vec![member("x", &[START]), member("a", &["b"]), member("b", &["a"])],
                1,
                "waits for itself",
            ),
            (vec![member("a", &["a"])], 0, "waits for itself"),
        ] {
            let found = check_members(&members);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].0 == place && found[0].1.contains(part), "{part}: {found:?}");
        }
    }
}
