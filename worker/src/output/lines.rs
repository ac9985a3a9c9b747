//! Holds lines that wait for storage, without an allocation for each: their bytes in one ring, their sizes in
//! another.

use std::borrow::Cow;
use std::collections::VecDeque;

use chrono::{DateTime, SubsecRound, Utc};

use super::{Line, Stream};

/// A complete line and its sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompleteLine {
    at: DateTime<Utc>,
    stream: Stream,
    /// Bytes that are kept.
    bytes: usize,
    /// Bytes that the task wrote, the line end included.
    pub(super) written: usize,
    /// Bytes that count towards the limits: replacements can make a text longer than what was written.
    pub(super) cost: usize,
}

impl CompleteLine {
    pub(super) fn new(at: DateTime<Utc>, stream: Stream, text: &[u8], written: usize) -> Self {
        let cost = written.max(text_bytes(text));
        Self { at, stream, bytes: text.len(), written, cost }
    }
}

/// A queue of lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: VecDeque<u8>,
    each: VecDeque<CompleteLine>,
    cost: usize,
    written: usize,
}

impl Lines {
    pub(super) fn len(&self) -> usize {
        self.each.len()
    }

    pub(super) fn cost(&self) -> usize {
        self.cost
    }

    /// Returns the bytes that the task wrote for these lines.
    pub(super) fn written(&self) -> usize {
        self.written
    }

    pub(super) fn push(&mut self, line: CompleteLine, text: &[u8]) {
        self.bytes.extend(text);
        self.each.push_back(line);
        self.cost += line.cost;
        self.written += line.written;
    }

    /// Removes the oldest line.
    pub(super) fn drop_oldest(&mut self) -> Option<CompleteLine> {
        let line = self.each.pop_front()?;
        self.bytes.drain(..line.bytes);
        self.cost -= line.cost;
        self.written -= line.written;
        Some(line)
    }

    /// Takes all lines, ready for storage.
    pub(super) fn take(&mut self) -> Vec<Line> {
        (self.cost, self.written) = (0, 0);
        let mut bytes = std::mem::take(&mut self.bytes);
        let bytes = bytes.make_contiguous();
        let mut from = 0;
        std::mem::take(&mut self.each)
            .into_iter()
            .map(|line| {
                let text = text(&bytes[from..from + line.bytes]).into_owned();
                from += line.bytes;
                Line { at: line.at.trunc_subsecs(3), stream: line.stream, text }
            })
            .collect()
    }

    /// Returns the last line of `stream` that has text.
    pub(super) fn last_line(&mut self, stream: Stream) -> Option<String> {
        let bytes = self.bytes.make_contiguous();
        let mut end = bytes.len();
        for line in self.each.iter().rev() {
            let line_bytes = &bytes[end - line.bytes..end];
            end -= line.bytes;
            let line_text = (line.stream == stream).then(|| text(line_bytes));
            if let Some(text) = line_text.filter(|text| !text.trim().is_empty()) {
                return Some(text.into_owned());
            }
        }
        None
    }
}

/// Converts bytes into text that can be stored: valid UTF-8 without NUL.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{FFFD}")) } else { text }
}

/// Returns the length of [`text`] in bytes.
fn text_bytes(bytes: &[u8]) -> usize {
    let replaced = char::REPLACEMENT_CHARACTER.len_utf8();
    let chunk = |chunk: std::str::Utf8Chunk<'_>| {
        let nuls = chunk.valid().bytes().filter(|&byte| byte == 0).count();
        let broken = if chunk.invalid().is_empty() { 0 } else { replaced };
        chunk.valid().len() + nuls * (replaced - 1) + broken
    };
    bytes.utf8_chunks().map(chunk).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_line_is_charged_for_the_text_that_is_stored(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0)], 0..40),
        ) {
            prop_assert_eq!(text_bytes(&bytes), text(&bytes).len());
        }
    }
}
