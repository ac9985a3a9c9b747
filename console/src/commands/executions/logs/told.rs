//! Output for people.

use sexton_model::output::{Line, Missing, Output, Stream};

use crate::show::line;

/// Longer than any line that is kept.
const MAX_LINE_CHARS: usize = 16 * 1024;

/// What attempt `number` wrote, line by line, safe to show.
pub fn told(number: i32, output: &Output) -> Vec<String> {
    let missing = Missing { lines: output.dropped_lines, bytes: output.dropped_bytes };
    let nothing = missing == Missing::default();
    if output.lines.is_empty() && nothing {
        return vec![format!("Attempt {number} wrote nothing.")];
    }
    let (head, tail) = output.lines.split_at(output.head_lines.min(output.lines.len()));
    let between = (!nothing).then(|| not_kept(missing));
    head.iter().map(one).chain(between).chain(tail.iter().map(one)).collect()
}

/// One line, safe to show.
pub(super) fn one(written: &Line) -> String {
    let mark = if written.stream == Stream::Stderr { "err" } else { "out" };
    let text = line(&written.text, MAX_LINE_CHARS);
    format!("{} {mark} {text}", written.at.format("%H:%M:%S%.3f"))
}

pub(super) fn not_kept(missing: Missing) -> String {
    let Missing { lines, bytes } = missing;
    format!("… {lines} lines ({bytes} bytes) were not kept …")
}
