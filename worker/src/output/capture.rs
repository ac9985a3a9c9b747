//! Splits output into lines, and keeps the first and the last of them until they are taken for storage.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};
use sexton_model::output::{Chunk, Line, Output, Stream};
use sexton_model::progress::{self, Progress};

use super::lines::{CompleteLine, Lines, text};

/// How much output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// Largest head in bytes. The tail may have as many, and up to twice as many once it is taken in several
    /// chunks.
    pub part_bytes: usize,
    /// Largest head in lines; the same holds for the tail.
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

/// Collects a task's output as it arrives.
#[derive(Debug)]
pub struct Capture {
    limits: OutputLimits,
    /// Lines of the head that were not taken yet.
    head: Lines,
    /// All lines of the head, taken or not; it is complete once a line did not fit, so that it has no holes.
    all_head: TakenLines,
    head_closed: bool,
    /// The newest lines after the head that were not taken yet.
    tail: Lines,
    /// Chunks of the tail that were taken and still count, consecutive and without a hole.
    taken: VecDeque<TakenLines>,
    stdout: Unfinished,
    stderr: Unfinished,
    /// Lines written so far, without unfinished ones.
    lines: i64,
    bytes: i64,
    /// Whether progress lines are recognised.
    reads_progress: bool,
    progress: Option<Progress>,
}

/// A count of taken lines, or of the whole head.
#[derive(Debug, Clone, Copy, Default)]
struct TakenLines {
    first_line: i64,
    lines: usize,
    cost: usize,
    written: usize,
}

/// The beginning of a line whose end has not arrived yet.
#[derive(Debug, Default)]
struct Unfinished {
    bytes: Vec<u8>,
    at: DateTime<Utc>,
}

impl Capture {
    /// Creates an empty capture.
    pub fn new(limits: OutputLimits) -> Self {
        Self {
            limits: OutputLimits { line_bytes: limits.line_bytes.max(16), ..limits },
            head: Lines::default(),
            all_head: TakenLines::default(),
            head_closed: false,
            tail: Lines::default(),
            taken: VecDeque::new(),
            stdout: Unfinished::default(),
            stderr: Unfinished::default(),
            lines: 0,
            bytes: 0,
            reads_progress: true,
            progress: None,
        }
    }

    /// Adds what was read from `stream` at the time `at`.
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
            if end.is_some() && unfinished.bytes.is_empty() {
                // The most frequent case: a line that was read at once is copied only once.
                self.end_line(stream, at, &bytes[..fits]);
            } else {
                unfinished.bytes.extend_from_slice(&bytes[..fits]);
                if end.is_some() {
                    let Unfinished { bytes, at } = std::mem::take(self.unfinished(stream));
                    self.end_line(stream, at, &bytes);
                } else if window.len() > room {
                    self.split_line(stream, at);
                }
            }
            bytes = &bytes[fits + usize::from(end.is_some())..];
        }
    }

    /// Treats progress lines as output from now on.
    pub(super) fn keep_progress_lines(&mut self) {
        self.reads_progress = false;
    }

    /// Returns the task's last report of progress, if it is new since the last call.
    pub(super) fn take_progress(&mut self) -> Option<Progress> {
        self.progress.take()
    }

    /// Returns the last line of `stream` that has text and was not taken yet.
    pub(super) fn last_line(&mut self, stream: Stream) -> Option<String> {
        let unfinished = text(&self.unfinished(stream).bytes).into_owned();
        Some(unfinished)
            .filter(|text| !text.trim().is_empty())
            .or_else(|| self.tail.last_line(stream))
            .or_else(|| self.head.last_line(stream))
    }

    /// Ends unfinished lines: nothing follows.
    pub(super) fn end(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let Unfinished { bytes, at } = std::mem::take(self.unfinished(stream));
            if !bytes.is_empty() && !self.is_progress(stream, at, &bytes) {
                self.keep(stream, at, &bytes, bytes.len());
            }
        }
    }

    /// Takes what is kept and was not taken before, as chunks in the order of their lines. `edit` may change
    /// the lines' texts.
    pub(super) fn take(&mut self, edit: impl Fn(&mut Line)) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        if self.head.len() > 0 {
            let last = (self.all_head.lines as i64, self.all_head.written as i64);
            chunks.push(chunk(&mut self.head, last, &edit));
        }
        if self.tail.len() > 0 {
            let (lines, cost) = (self.tail.len(), self.tail.cost());
            let chunk = chunk(&mut self.tail, (self.lines, self.bytes), &edit);
            self.take_tail(TakenLines { first_line: chunk.first_line, lines, cost, written: 0 });
            chunks.push(chunk);
        }
        chunks
    }

    /// Returns the range of taken lines that no longer count: above the first and below the second.
    pub(super) fn superseded(&self) -> Option<(i64, i64)> {
        let head = self.all_head.lines as i64;
        let below = self.taken.front()?.first_line;
        (below > head + 1).then_some((head, below))
    }

    fn take_tail(&mut self, new: TakenLines) {
        let follows = |last: &TakenLines| last.first_line + last.lines as i64 == new.first_line;
        if !self.taken.back().is_some_and(follows) {
            // Lines in between were dropped, so the new ones form a tail by themselves.
            self.taken.clear();
        }
        self.taken.push_back(new);
        let OutputLimits { part_bytes, part_lines, .. } = self.limits;
        let sum = |of: fn(&TakenLines) -> usize, taken: &VecDeque<TakenLines>| -> usize {
            taken.iter().skip(1).map(of).sum()
        };
        while sum(|taken| taken.cost, &self.taken) >= part_bytes
            || sum(|taken| taken.lines, &self.taken) >= part_lines
        {
            self.taken.pop_front();
        }
    }

    /// Returns all of the captured output, if nothing was taken before.
    pub fn finish(mut self) -> Output {
        self.end();
        // Only chunks made elsewhere can be unreadable.
        Output::of(&self.take(|_| ())).unwrap_or_default()
    }

    fn unfinished(&mut self, stream: Stream) -> &mut Unfinished {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn end_line(&mut self, stream: Stream, at: DateTime<Utc>, line: &[u8]) {
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        if !self.is_progress(stream, at, text) {
            self.keep(stream, at, text, line.len() + 1);
        }
    }

    /// Records the progress in a progress line; returns whether the line is one.
    fn is_progress(&mut self, stream: Stream, at: DateTime<Utc>, line: &[u8]) -> bool {
        if !self.reads_progress || stream != Stream::Stdout || !line.starts_with(b"::") {
            return false;
        }
        let progress = std::str::from_utf8(line).ok().and_then(|line| progress::parse(line, at));
        let is = progress.is_some();
        self.progress = progress.or(self.progress.take());
        is
    }

    /// Ends a full line early, without cutting a character in two.
    fn split_line(&mut self, stream: Stream, at: DateTime<Utc>) {
        let full = std::mem::take(self.unfinished(stream));
        let cut = character_boundary(&full.bytes);
        *self.unfinished(stream) = Unfinished { bytes: full.bytes[cut..].to_vec(), at };
        self.keep(stream, full.at, &full.bytes[..cut], cut);
    }

    fn keep(&mut self, stream: Stream, at: DateTime<Utc>, text: &[u8], written: usize) {
        let line = CompleteLine::new(at, stream, text, written);
        self.lines += 1;
        self.bytes += written as i64;
        let OutputLimits { part_bytes, part_lines, .. } = self.limits;
        let head = &mut self.all_head;
        self.head_closed |= head.cost + line.cost > part_bytes || head.lines >= part_lines;
        if !self.head_closed {
            head.cost += line.cost;
            head.written += written;
            head.lines += 1;
            return self.head.push(line, text);
        }
        // Room first: a full tail must not grow by a line before it shrinks.
        let fits = |tail: &Lines| tail.cost() + line.cost <= part_bytes && tail.len() < part_lines;
        while !fits(&self.tail) && self.tail.drop_oldest().is_some() {}
        if fits(&self.tail) {
            self.tail.push(line, text);
        }
    }
}

/// Takes lines of which the last is line `end.0` of the attempt and ends with its byte `end.1`.
fn chunk(lines: &mut Lines, end: (i64, i64), edit: impl Fn(&mut Line)) -> Chunk {
    let (count, written) = (lines.len() as i64, lines.written() as i64);
    let mut lines = lines.take();
    lines.iter_mut().for_each(edit);
    Chunk::new(end.0 - count + 1, end.1 - written, written, &lines)
}

/// Returns the largest cut that leaves no unfinished UTF-8 character before it; all of `bytes` if they are not
/// UTF-8.
pub(crate) fn character_boundary(bytes: &[u8]) -> usize {
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
