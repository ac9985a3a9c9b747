//! What a task wrote to stdout and stderr, line by line, within fixed bounds.
//!
//! # Guarantees
//!
//! - However much a task writes, at most the head and the tail are kept, each bounded in bytes and
//!   in lines; what lies between is counted, and memory stays bounded while it is written.
//! - Every byte written is either in a kept line (its line end included) or in `dropped_bytes`.
//! - The text is storable as `jsonb`: valid UTF-8 without NUL; what is not is replaced by U+FFFD.
//!   Other control characters are kept: whoever shows them to a terminal must escape them.
//!
//! Lines of the two streams are in the order of their ends' arrival. A line longer than the limit
//! becomes several. It reads no pipe and no clock; the caller brings both.

use std::collections::VecDeque;

use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};

/// Which of its two streams a task wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// One line of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When its first byte was read, to the millisecond.
    pub at: DateTime<Utc>,
    /// Where it was written.
    pub stream: Stream,
    /// The text, without its line end.
    pub text: String,
}

/// The output of one attempt as it is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The kept lines: the head, then the tail.
    pub lines: Vec<Line>,
    /// How many of `lines` are the head: whatever was dropped was dropped after these.
    pub head_lines: usize,
    /// Bytes between head and tail that were not kept, line ends included.
    pub dropped_bytes: u64,
    /// Lines between head and tail that were not kept.
    pub dropped_lines: u64,
}

/// Longest extract that [`Output::last_words`] returns, in characters.
const LAST_WORDS_MAX_CHARS: usize = 500;

impl Output {
    /// The last line that says anything, of stderr if it has one: what a failed task died of.
    pub fn last_words(&self) -> Option<String> {
        let spoken = |line: &&Line| !line.text.trim().is_empty();
        let last_of =
            |stream| self.lines.iter().rev().filter(|line| line.stream == stream).find(spoken);
        let line = last_of(Stream::Stderr).or_else(|| last_of(Stream::Stdout))?;
        Some(line.text.trim().chars().take(LAST_WORDS_MAX_CHARS).collect())
    }
}

/// How much output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// Most bytes of the head, and again of the tail.
    pub part_bytes: usize,
    /// Most lines of the head, and again of the tail.
    pub part_lines: usize,
    /// Longest line in bytes, at least 16; a longer one is split.
    pub line_bytes: usize,
}

impl Default for OutputLimits {
    /// 32 KiB and 500 lines each of head and tail, lines of 8 KiB.
    fn default() -> Self {
        Self { part_bytes: 32 * 1024, part_lines: 500, line_bytes: 8 * 1024 }
    }
}

/// Collects a task's output as it is read.
#[derive(Debug)]
pub struct Capture {
    limits: OutputLimits,
    head: Vec<Kept>,
    head_bytes: usize,
    /// Once one line did not fit, the head is complete: it must not have holes.
    head_closed: bool,
    tail: VecDeque<Kept>,
    tail_bytes: usize,
    stdout: Unfinished,
    stderr: Unfinished,
    dropped_bytes: u64,
    dropped_lines: u64,
}

/// A whole line and what it stands for in the accounts.
#[derive(Debug)]
struct Kept {
    line: Line,
    /// Bytes that the task wrote for it.
    written: usize,
    /// Bytes that it is charged for: replacements can make a text longer than what was written.
    cost: usize,
}

/// The beginning of a line whose end has not been read yet.
#[derive(Debug, Default)]
struct Unfinished {
    bytes: Vec<u8>,
    at: DateTime<Utc>,
}

impl Capture {
    /// An empty capture.
    pub fn new(limits: OutputLimits) -> Self {
        let limits = OutputLimits { line_bytes: limits.line_bytes.max(16), ..limits };
        Self {
            limits,
            head: Vec::new(),
            head_bytes: 0,
            head_closed: false,
            tail: VecDeque::new(),
            tail_bytes: 0,
            stdout: Unfinished::default(),
            stderr: Unfinished::default(),
            dropped_bytes: 0,
            dropped_lines: 0,
        }
    }

    /// Takes in what was read from `stream` at the time `at`.
    pub fn push(&mut self, stream: Stream, at: DateTime<Utc>, mut bytes: &[u8]) {
        let limit = self.limits.line_bytes;
        while !bytes.is_empty() {
            let unfinished = self.unfinished(stream);
            if unfinished.bytes.is_empty() {
                unfinished.at = at;
            }
            let room = limit - unfinished.bytes.len();
            // One byte more than fits: a full line followed by its end is not split.
            let window = &bytes[..bytes.len().min(room + 1)];
            let end = window.iter().position(|&byte| byte == b'\n');
            let fits = end.unwrap_or(window.len().min(room));
            unfinished.bytes.extend_from_slice(&bytes[..fits]);
            bytes = &bytes[fits + usize::from(end.is_some())..];
            if end.is_some() {
                self.end_line(stream);
            } else if window.len() > room {
                self.split_line(stream, at);
            }
        }
    }

    /// The captured output; a last line without an end counts as a line.
    pub fn finish(mut self) -> Output {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let Unfinished { bytes, at } = std::mem::take(self.unfinished(stream));
            if !bytes.is_empty() {
                self.keep(stream, at, &bytes, bytes.len());
            }
        }
        let head_lines = self.head.len();
        let lines = self.head.into_iter().chain(self.tail).map(|kept| kept.line).collect();
        let Self { dropped_bytes, dropped_lines, .. } = self;
        Output { lines, head_lines, dropped_bytes, dropped_lines }
    }

    fn unfinished(&mut self, stream: Stream) -> &mut Unfinished {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn end_line(&mut self, stream: Stream) {
        let Unfinished { bytes, at } = std::mem::take(self.unfinished(stream));
        let text = bytes.strip_suffix(b"\r").unwrap_or(&bytes);
        self.keep(stream, at, text, bytes.len() + 1);
    }

    /// Ends a full line before its end, without cutting a character in two.
    fn split_line(&mut self, stream: Stream, at: DateTime<Utc>) {
        let full = std::mem::take(self.unfinished(stream));
        let cut = character_boundary(&full.bytes);
        *self.unfinished(stream) = Unfinished { bytes: full.bytes[cut..].to_vec(), at };
        self.keep(stream, full.at, &full.bytes[..cut], cut);
    }

    fn keep(&mut self, stream: Stream, at: DateTime<Utc>, text: &[u8], written: usize) {
        let text = String::from_utf8_lossy(text).replace('\0', "\u{FFFD}");
        let cost = written.max(text.len());
        let kept = Kept { line: Line { at: at.trunc_subsecs(3), stream, text }, written, cost };
        let OutputLimits { part_bytes, part_lines, .. } = self.limits;
        self.head_closed |= self.head_bytes + cost > part_bytes || self.head.len() >= part_lines;
        if !self.head_closed {
            self.head_bytes += cost;
            self.head.push(kept);
            return;
        }
        self.tail_bytes += cost;
        self.tail.push_back(kept);
        while self.tail_bytes > part_bytes || self.tail.len() > part_lines {
            let Some(oldest) = self.tail.pop_front() else { break };
            self.tail_bytes -= oldest.cost;
            self.dropped_bytes += oldest.written as u64;
            self.dropped_lines += 1;
        }
    }
}

/// The largest cut that leaves no unfinished UTF-8 character before it; all of `bytes` if they are
/// no UTF-8 anyway.
fn character_boundary(bytes: &[u8]) -> usize {
    let is_start = |&byte: &u8| byte & 0b1100_0000 != 0b1000_0000;
    match bytes.iter().rev().take(4).position(is_start) {
        Some(back) => {
            let start = bytes.len() - 1 - back;
            let whole = std::str::from_utf8(&bytes[start..]).is_ok();
            if whole || bytes[start].is_ascii() { bytes.len() } else { start }
        }
        None => bytes.len(),
    }
}

#[cfg(test)]
mod tests;
