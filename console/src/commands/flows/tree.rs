//! Draws a flow as a tree. A member that waits for several stands beneath the last of them.

use std::collections::HashMap;

use sexton_operations::flows::describe_wait;
use sexton_operations::short_ids::ShortIds;
use sexton_store::flows::FlowMember;
use uuid::Uuid;

use crate::show::{Cell, Table, Tone, line};

/// The most characters of an error.
const MAX_WHY_CHARS: usize = 200;
/// The most steps that are indented; deeper members stand at the same place.
const MAX_INDENTED: usize = 30;

/// Draws the members, those first that others wait for.
pub(in crate::commands) fn draw(members: &[FlowMember], ids: &ShortIds<Uuid>) -> Table {
    let mut table =
        Table::new(&["MEMBER", "STATE", "JOB", "ID", "WHAT NEXT, OR WHY"]).single_line_rows();
    let by_name: HashMap<&str, &FlowMember> =
        members.iter().map(|member| (member.name.as_str(), member)).collect();
    let mut children: HashMap<Option<&str>, Vec<&FlowMember>> = HashMap::new();
    for member in members {
        let above = member.after.iter().filter_map(|name| by_name.get(name.as_str()));
        let parent = above.max_by_key(|above| above.depth).map(|above| above.name.as_str());
        children.entry(parent).or_default().push(member);
    }
    // The members still to draw, the next one last, each with the lines before it.
    let mut left: Vec<(String, &FlowMember)> = Vec::new();
    push_children(&mut left, &children, None, "", 0);
    while let Some((prefix, member)) = left.pop() {
        table.row(vec![
            Cell::new(format!("{prefix}{}", member.name)),
            state(member),
            Cell::new(&member.job_name),
            Cell::new(ids.get(&member.execution_id)),
            remark(member),
        ]);
        push_children(&mut left, &children, Some(&member.name), &prefix, member.depth + 1);
    }
    table
}

fn push_children<'m>(
    left: &mut Vec<(String, &'m FlowMember)>,
    children: &HashMap<Option<&str>, Vec<&'m FlowMember>>,
    of: Option<&str>,
    prefix: &str,
    depth: i32,
) {
    let Some(children) = children.get(&of) else { return };
    // The lines above a member's own corner go on, or have ended.
    let lines = prefix.replace("├─ ", "│  ").replace("└─ ", "   ");
    for (place, child) in children.iter().enumerate().rev() {
        let corner = match (depth, place + 1 == children.len()) {
            (0, _) => "",
            (_, true) => "└─ ",
            (_, false) => "├─ ",
        };
        let lines = if lines.chars().count() > 3 * MAX_INDENTED { "" } else { &lines };
        left.push((format!("{lines}{corner}"), child));
    }
}

fn state(member: &FlowMember) -> Cell {
    if member.state == "pending" && !member.decided {
        return Cell::toned("blocked", Tone::Faint);
    }
    Cell::state(&member.state)
}

fn remark(member: &FlowMember) -> Cell {
    if let Some(wait) = describe_wait(member) {
        let tone = if member.parked.is_some() { Tone::Bad } else { Tone::Faint };
        return Cell::toned(wait, tone);
    }
    match member.state.as_str() {
        "failed" | "discarded" | "retrying" => {
            Cell::new(line(member.error_message.as_deref().unwrap_or(""), MAX_WHY_CHARS))
        }
        "skipped" => match member.skip_reason.as_deref() {
            Some("upstream") => {
                Cell::toned(format!("by the ends of {}", member.after.join(", ")), Tone::Faint)
            }
            other => Cell::toned(other.unwrap_or(""), Tone::Faint),
        },
        _ if member.upstream > 1 => {
            Cell::toned(format!("after {}", member.after.join(", ")), Tone::Faint)
        }
        _ => Cell::none(),
    }
}
