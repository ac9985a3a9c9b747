//! What a task writes, from its pipe through the database to an operator's terminal.

use chrono::{DateTime, Utc};
use sexton_console::commands::executions::logs::render_output;
use sexton_model::output::Chunk;
use sexton_operations::executions::output::{join_chunks, parse_legacy_output};
use sexton_worker::output::{Capture, Output, OutputLimits, Stream};

use crate::error_text;

/// The longest line that is kept, in characters; one of them may become ten.
const MAX_DISPLAY_BYTES: usize = 200_000;

pub(crate) fn run(input: &[u8]) {
    // Small limits, so that small inputs meet them; and those of the worker.
    let small = OutputLimits { part_bytes: 64, part_lines: 5, line_bytes: 16 };
    for limits in [small, OutputLimits::default()] {
        let output = capture(input, limits);
        check_limits(&output, limits, input.len());
        let value = serde_json::to_value(&output).expect("output is JSON");
        let again: Output = serde_json::from_value(value).expect("as it was written");
        assert_eq!(again, output);
        check_display(&output);
        check_chunk(&output);
    }
    // Rows that somebody else wrote.
    if let Ok(value) = serde_json::from_slice(input) {
        match parse_legacy_output(1, value) {
            Ok(output) => check_display(&output),
            Err(error) => error_text::check(&error, 600),
        }
    }
    let text = String::from_utf8_lossy(input).into_owned();
    let (first_line, lines) = (i64::from(input.first().copied().unwrap_or(1)), i64::MAX);
    let chunk =
        Chunk { first_line, lines, bytes_before: -1, bytes: lines, from: at(), to: at(), text };
    match join_chunks(1, &[chunk.clone(), chunk]) {
        Ok(output) => check_display(&output),
        Err(error) => error_text::check(&error, 600),
    }
}

fn check_display(output: &Output) {
    for line in render_output(1, output) {
        error_text::check(&line, MAX_DISPLAY_BYTES);
    }
}

/// Through the database: what was kept is what is read.
fn check_chunk(output: &Output) {
    if !output.lines.is_empty() {
        let read = Chunk::new(1, 0, 0, &output.lines).read().expect("a chunk that was made here");
        assert_eq!(read, output.lines);
    }
}

fn at() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH
}

/// The input is what is written, in pieces whose size and stream it says itself.
fn capture(input: &[u8], limits: OutputLimits) -> Output {
    let mut capture = Capture::new(limits);
    let mut rest = input;
    while let [first, after @ ..] = rest {
        let stream = if first & 1 == 0 { Stream::Stdout } else { Stream::Stderr };
        let (piece, after) = after.split_at(after.len().min(usize::from(first >> 1)));
        capture.push(stream, at(), piece);
        rest = after;
    }
    capture.finish()
}

fn check_limits(output: &Output, limits: OutputLimits, written: usize) {
    assert!(output.head_lines <= output.lines.len());
    assert!(output.lines.len() <= 2 * limits.part_lines);
    let kept_bytes: usize = output.lines.iter().map(|line| line.text.len()).sum();
    assert!(kept_bytes <= 2 * limits.part_bytes);
    assert!(output.lines.iter().all(|line| !line.text.contains(['\0', '\n'])));
    assert!(output.dropped_bytes <= written as u64);
}
