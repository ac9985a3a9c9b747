//! Groups similar failures: the fingerprint of an error, and its pattern for people.
//!
//! Two failures belong to one group if class and message are the same except for parts that change between runs:
//! numbers and ids, addresses, paths, and quoted parts. Those become placeholders; the text with placeholders is the
//! *pattern*, and the *fingerprint* is a hash of class and pattern. The rule for operators is in
//! `docs/operations/failed.md`.
//!
//! # Guarantees
//!
//! The same class and message give the same fingerprint in every release and on every machine: groups, their notes
//! and mutes depend on it. Tests hold some values. A change of the rule is a migration. A pattern's own pattern is
//! itself. Parsing takes time in proportion to the text, of which at most [`MAX_READ_BYTES`] are read, and yields at
//! most [`MAX_PATTERN_CHARS`].

mod matchers;
mod runs;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::hash;

/// Maximum number of bytes read of a message; workers keep at most half as many.
pub const MAX_READ_BYTES: usize = 4_096;
/// The longest pattern.
pub const MAX_PATTERN_CHARS: usize = 160;
/// Maximum number of bytes of a class that count.
const MAX_CLASS_BYTES: usize = 200;
/// Digits of a fingerprint.
pub const FINGERPRINT_DIGITS: usize = 16;
/// Placeholders may form a text that parses differently; it has settled long before this.
const MAX_PASSES: usize = 8;

/// The hash of an error's class and pattern, written as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Fingerprint(u64);

/// Not 16 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a fingerprint has {FINGERPRINT_DIGITS} hexadecimal digits, as `sexton groups list` shows them"
)]
pub struct FingerprintError;

/// Returns the fingerprint of an error.
pub fn fingerprint(class: &str, message: &str) -> Fingerprint {
    // The pattern holds no control character, so none of its bytes separates as 0xff does.
    Fingerprint(hash::of(cut_bytes(class, MAX_CLASS_BYTES), pattern(message).as_bytes()))
}

/// Returns the message with placeholders: its first line that is not empty.
pub fn pattern(message: &str) -> String {
    let read = cut_bytes(message, MAX_READ_BYTES);
    let line = read.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    let mut text = pass(line);
    for _ in 1..MAX_PASSES {
        let next = pass(&text);
        if next == text {
            break;
        }
        text = next;
    }
    text
}

/// Makes one pass, from left to right.
fn pass(line: &str) -> String {
    let mut out = Pattern::default();
    let mut quotes = matchers::Quotes::default();
    let mut remaining = line;
    while let Some(character) = remaining.chars().next() {
        if out.is_full() {
            break;
        }
        if let Some(length) = quotes.match_length(remaining, out.last()) {
            out.put("<quoted>");
            remaining = &remaining[length..];
        } else if let Some((placeholder, length)) =
            matchers::match_placeholder(remaining, out.last())
        {
            out.put(placeholder);
            remaining = &remaining[length..];
        } else if character.is_alphanumeric() {
            let length = runs::length(remaining);
            runs::put(&remaining[..length], &mut out);
            remaining = &remaining[length..];
        } else {
            out.push(character);
            remaining = &remaining[character.len_utf8()..];
        }
    }
    out.finish()
}

/// The pattern so far.
#[derive(Debug, Default)]
struct Pattern {
    text: String,
    chars: usize,
}

impl Pattern {
    fn last(&self) -> Option<char> {
        self.text.chars().next_back()
    }

    const fn is_full(&self) -> bool {
        self.chars >= MAX_PATTERN_CHARS
    }

    fn put(&mut self, text: &str) {
        text.chars().for_each(|character| self.push(character));
    }

    /// Turns blanks and control characters into one blank, and drops characters beyond the maximum.
    fn push(&mut self, character: char) {
        let blank = character.is_whitespace() || character.is_control();
        if self.is_full() || (blank && self.last().is_none_or(|last| last == ' ')) {
            return;
        }
        self.text.push(if blank { ' ' } else { character });
        self.chars += 1;
    }

    fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        self.text
    }
}

fn cut_bytes(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != FINGERPRINT_DIGITS || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(FingerprintError);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| FingerprintError)
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = FingerprintError;

    fn try_from(text: String) -> Result<Self, FingerprintError> {
        text.parse()
    }
}
