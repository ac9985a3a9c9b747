//! A task's output: lines, and the chunks of lines that are stored.
//!
//! A chunk records which lines of its attempt it holds and how much was written before them. So chunks can be stored
//! twice, or removed, and a reader knows what is missing between two of them.

use std::fmt::Write as _;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// The stream that a task wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// One line of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Line {
    /// When its first byte was read, to the millisecond.
    pub at: DateTime<Utc>,
    /// Its stream.
    pub stream: Stream,
    /// The text, without its line end.
    pub text: String,
}

/// Consecutive lines of one attempt; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The number of its first line, counted from 1 over the attempt's whole output.
    pub first_line: i64,
    /// Number of its lines.
    pub lines: i64,
    /// Bytes that the attempt had written before its first line, including line ends.
    pub bytes_before: i64,
    /// Bytes that the attempt wrote for its lines.
    pub bytes: i64,
    /// The earliest time of its lines.
    pub from: DateTime<Utc>,
    /// The latest time of its lines.
    pub to: DateTime<Utc>,
    /// The lines, each as `o` or `e` for its stream, the milliseconds after `from`, a blank, and the text; separated
    /// by line feeds.
    pub text: String,
}

/// A chunk that no worker of this version wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {0} of the output is not readable")]
pub struct UnreadableLine(pub i64);

impl Chunk {
    /// Makes a chunk of `lines`, at least one, none with a line feed.
    pub fn new(first_line: i64, bytes_before: i64, bytes: i64, lines: &[Line]) -> Self {
        let times = || lines.iter().map(|line| line.at);
        let from = times().min().unwrap_or_default().trunc_subsecs(3);
        let to = times().max().unwrap_or_default();
        let mut text = String::with_capacity(lines.iter().map(|line| line.text.len() + 8).sum());
        for line in lines {
            let stream = if line.stream == Stream::Stderr { 'e' } else { 'o' };
            let gap = if text.is_empty() { "" } else { "\n" };
            let after = (line.at - from).num_milliseconds();
            // Writing to a String cannot fail.
            let _ = write!(text, "{gap}{stream}{after} {}", line.text);
        }
        Self { first_line, lines: lines.len() as i64, bytes_before, bytes, from, to, text }
    }

    /// Parses its lines.
    ///
    /// # Errors
    ///
    /// [`UnreadableLine`] with the number of the first malformed line.
    pub fn read(&self) -> Result<Vec<Line>, UnreadableLine> {
        let read = |line: &str| {
            let stream = match line.as_bytes().first()? {
                b'o' => Stream::Stdout,
                b'e' => Stream::Stderr,
                _ => return None,
            };
            let (after, text) = line[1..].split_once(' ')?;
            let after = TimeDelta::try_milliseconds(after.parse().ok()?)?;
            let at = self.from.checked_add_signed(after)?;
            Some(Line { at, stream, text: text.to_owned() })
        };
        let number = |index: usize| UnreadableLine(self.first_line.saturating_add(index as i64));
        let lines = self.text.split('\n').enumerate();
        lines.map(|(index, line)| read(line).ok_or(number(index))).collect()
    }

    /// Returns the number of its last line.
    pub fn last_line(&self) -> i64 {
        self.first_line.saturating_add(self.lines - 1)
    }

    /// Returns what is missing before this chunk, if the previous one ended with line `line` and byte `bytes` of the
    /// attempt (0 and 0 at the beginning).
    pub fn missing_after(&self, line: i64, bytes: i64) -> Missing {
        let count = |now: i64, before: i64| u64::try_from(now.saturating_sub(before)).unwrap_or(0);
        Missing {
            lines: count(self.first_line.saturating_sub(1), line),
            bytes: count(self.bytes_before, bytes),
        }
    }
}

/// Lines that were not kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missing {
    /// Number of lines.
    pub lines: u64,
    /// Number of their bytes, including line ends.
    pub bytes: u64,
}

/// The kept output of one attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Output {
    /// The kept lines: the head, then the tail.
    pub lines: Vec<Line>,
    /// Number of `lines` in the head: lines were dropped only after these.
    pub head_lines: usize,
    /// Bytes dropped between head and tail, including line ends.
    pub dropped_bytes: u64,
    /// Lines dropped between head and tail.
    pub dropped_lines: u64,
}

impl Output {
    /// Returns the output in `chunks`, which are in the order of their lines.
    ///
    /// # Errors
    ///
    /// [`UnreadableLine`].
    pub fn of<'a>(chunks: impl IntoIterator<Item = &'a Chunk>) -> Result<Self, UnreadableLine> {
        let mut output = Self::default();
        let (mut line, mut bytes) = (0, 0);
        let mut head = None;
        for chunk in chunks {
            let missing = chunk.missing_after(line, bytes);
            if missing != Missing::default() {
                head.get_or_insert(output.lines.len());
                output.dropped_lines += missing.lines;
                output.dropped_bytes += missing.bytes;
            }
            output.lines.extend(chunk.read()?);
            (line, bytes) = (chunk.last_line(), chunk.bytes_before.saturating_add(chunk.bytes));
        }
        output.head_lines = head.unwrap_or(output.lines.len());
        Ok(output)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(ms: i64, stream: Stream, text: &str) -> Line {
        let at = DateTime::from_timestamp_millis(ms).unwrap();
        Line { at, stream, text: text.to_owned() }
    }

    proptest! {
        #[test]
        fn a_chunk_holds_its_lines_as_they_are(
            lines in prop::collection::vec(
                (0i64..5_000_000_000_000, any::<bool>(), "[^\n]{0,12}"), 1..20),
        ) {
            let stream = |error| if error { Stream::Stderr } else { Stream::Stdout };
            let lines: Vec<Line> =
                lines.iter().map(|(ms, error, text)| line(*ms, stream(*error), text)).collect();
            let chunk = Chunk::new(7, 100, 50, &lines);
            prop_assert_eq!(chunk.read().unwrap(), lines);
        }

        #[test]
        fn no_text_and_no_numbers_make_it_panic(
            text in any::<String>(), first in any::<i64>(), lines in 1i64.., bytes in any::<i64>(),
        ) {
            let from = DateTime::<Utc>::MAX_UTC;
            let chunk = Chunk { first_line: first, lines, bytes_before: bytes, bytes, from, to: from, text };
            let _ = Output::of([&chunk, &chunk]);
        }
    }

    #[test]
    fn what_is_missing_between_two_chunks_is_counted_once() {
        let text = |text| [line(0, Stream::Stdout, text)];
        let (head, tail) =
            (Chunk::new(1, 0, 5, &text("head")), Chunk::new(9, 50, 5, &text("tail")));
        let output = Output::of([&head, &tail]).unwrap();
        assert_eq!((output.head_lines, output.dropped_lines, output.dropped_bytes), (1, 7, 45));
        let next = Chunk::new(2, 5, 5, &text("next"));
        let whole = Output::of([&head, &next]).unwrap();
        assert_eq!((whole.head_lines, whole.dropped_lines, whole.dropped_bytes), (2, 0, 0));
    }

    #[test]
    fn what_is_no_chunk_says_which_line() {
        let mut chunk = Chunk::new(4, 0, 0, &[line(0, Stream::Stdout, "a")]);
        chunk.text.push_str("\nxyz");
        assert_eq!(chunk.read(), Err(UnreadableLine(5)));
    }
}
