//! Histories of a flow's members in words.

use super::{Action, Flow, MEMBERS, World};
use crate::explorer::History;

const NAMES: [&str; MEMBERS] = ["a", "b", "c", "d"];

/// One line for each action.
pub(super) fn describe(history: &History<Flow>) -> Vec<String> {
    let mut before = history.start;
    let mut lines = Vec::with_capacity(history.steps.len());
    for (action, after) in &history.steps {
        lines.push(line(*action, &before, after));
        before = *after;
    }
    lines
}

fn line(action: Action, before: &World, after: &World) -> String {
    let does = |session: usize, member: usize, what: &str| {
        format!("session {} {what} {}, not yet committed", session + 1, NAMES[member])
    };
    match action {
        Action::End(session, member, true) => does(session, member, "writes the success of"),
        Action::End(session, member, false) => does(session, member, "parks"),
        Action::Cancel(session, member) => does(session, member, "cancels"),
        Action::Requeue(session, member) => does(session, member, "requeues"),
        Action::Discard(session, member) => does(session, member, "discards"),
        Action::Restore(session, member) => does(session, member, "restores"),
        Action::Follow(session) => format!("session {} reads the members downstream", session + 1),
        Action::RollBack(session) => format!("session {} is rolled back", session + 1),
        Action::Commit(session) => {
            let changes = (0..MEMBERS).filter_map(|member| {
                let (old, new) = (before.members[member], after.members[member]);
                let freed = !old.decided && new.decided && old.state == new.state;
                let what = if freed { "due" } else { new.state.as_str() };
                (freed || old.state != new.state).then(|| format!("{} is {what}", NAMES[member]))
            });
            format!("session {} commits: {}", session + 1, changes.collect::<Vec<_>>().join(", "))
        }
    }
}
