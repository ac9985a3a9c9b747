//! What an attempt wrote, within the limit of a page.

use sexton_model::output::{Line, Output, Stream};
use sexton_operations::error::{NotFound, OperationError};
use sexton_operations::executions::output::{WrittenOutput, find};
use sexton_store::Store;
use uuid::Uuid;

/// Lines from the beginning and from the end of an output that is too long for a page.
const HEAD_LINES: usize = 1_000;
const TAIL_LINES: usize = 4_000;

/// An output, ready to be shown: what stands before and behind the place where lines are missing.
#[derive(Debug)]
pub(super) struct ShownOutput {
    pub(super) number: i32,
    pub(super) is_running: bool,
    pub(super) head: Vec<Line>,
    /// Lines between the two, which the worker did not keep, or which a page does not show.
    pub(super) missing: u64,
    /// Whether the page leaves out lines that the worker kept, which a command shows.
    pub(super) is_kept: bool,
    pub(super) tail: Vec<Line>,
}

impl ShownOutput {
    /// Returns the class of a line's stream.
    pub(super) fn class(line: &Line) -> &'static str {
        if line.stream == Stream::Stderr { "line-stderr" } else { "line-stdout" }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty()
    }
}

/// Reads the output of an attempt of an execution that exists, or of the last one. `None`: no attempt was opened yet.
pub(super) async fn shown(
    store: &Store,
    id: Uuid,
    attempt: Option<i32>,
) -> Result<Option<ShownOutput>, OperationError> {
    match (find(store, id, attempt).await?, attempt) {
        (Some(written), _) => Ok(Some(split(written))),
        (None, None) => Ok(None),
        (None, Some(number)) => Err(NotFound::Attempt { execution: id, number }.into()),
    }
}

fn split(written: WrittenOutput) -> ShownOutput {
    let Output { mut lines, head_lines, dropped_lines, .. } = written.output.unwrap_or_default();
    let mut tail = lines.split_off(head_lines.min(lines.len()));
    let mut left_out = 0;
    if dropped_lines == 0 && tail.is_empty() && lines.len() > HEAD_LINES + TAIL_LINES {
        tail = lines.split_off(HEAD_LINES);
    }
    left_out += lines.len().saturating_sub(HEAD_LINES.max(TAIL_LINES));
    lines.truncate(HEAD_LINES.max(TAIL_LINES));
    let before = tail.len().saturating_sub(TAIL_LINES);
    tail.drain(..before);
    left_out += before;
    ShownOutput {
        number: written.number,
        is_running: written.outcome.is_none(),
        head: lines,
        missing: dropped_lines.saturating_add(left_out as u64),
        is_kept: left_out > 0,
        tail,
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn output(lines: usize, head_lines: usize, dropped_lines: u64) -> ShownOutput {
        let line =
            Line { at: DateTime::UNIX_EPOCH, stream: Stream::Stdout, text: "line".to_owned() };
        let output =
            Output { lines: vec![line; lines], head_lines, dropped_lines, dropped_bytes: 0 };
        split(WrittenOutput { number: 1, outcome: None, output: Some(output) })
    }

    #[test]
    fn a_short_output_is_shown_whole() {
        let shown = output(3, 3, 0);
        assert_eq!((shown.head.len(), shown.tail.len(), shown.missing), (3, 0, 0));
        let shown = output(30, 10, 7);
        assert_eq!((shown.head.len(), shown.tail.len(), shown.missing), (10, 20, 7));
        assert!(!shown.is_kept);
    }

    #[test]
    fn of_a_long_one_the_page_counts_what_it_leaves_out() {
        for shown in [output(20_000, 20_000, 0), output(20_000, 10, 7), output(20_000, 15_000, 7)] {
            let lines = (shown.head.len() + shown.tail.len()) as u64;
            assert!(lines <= (2 * TAIL_LINES) as u64 && shown.is_kept);
            let dropped = if shown.head.len() == HEAD_LINES { 0 } else { 7 };
            assert_eq!(lines + shown.missing, 20_000 + dropped);
        }
    }
}
