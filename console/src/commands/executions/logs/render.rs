//! Output for people.

use sexton_model::output::{Line, Missing, Output, Stream};

use crate::show::line;

/// Longer than any line that is kept.
const MAX_LINE_CHARS: usize = 16 * 1024;

/// What attempt `number` wrote, line by line, safe to show.
pub fn render_output(number: i32, output: &Output) -> Vec<String> {
    let missing = Missing { lines: output.dropped_lines, bytes: output.dropped_bytes };
    let nothing = missing == Missing::default();
    if output.lines.is_empty() && nothing {
        return vec![format!("Attempt {number} wrote nothing.")];
    }
    let (head, tail) = output.lines.split_at(output.head_lines.min(output.lines.len()));
    let between = (!nothing).then(|| render_missing(missing));
    head.iter().map(render_line).chain(between).chain(tail.iter().map(render_line)).collect()
}

/// One line, safe to show.
pub(super) fn render_line(written: &Line) -> String {
    let mark = if written.stream == Stream::Stderr { "err" } else { "out" };
    let text = line(&written.text, MAX_LINE_CHARS);
    format!("{} {mark} {text}", written.at.format("%H:%M:%S%.3f"))
}

pub(super) fn render_missing(missing: Missing) -> String {
    let Missing { lines, bytes } = missing;
    format!("… {lines} lines ({bytes} bytes) were not kept …")
}
