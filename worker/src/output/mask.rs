//! Masking: what must not be stored is replaced before anything is.
//!
//! Two kinds. *Values* are secrets that are known byte for byte; they are looked for in the stream
//! itself, before it is cut into lines, so that neither the pieces in which it is read nor the limit
//! of a line hides one. *Patterns* are a regular expression that is matched against each line that is
//! kept, and against each message.
//!
//! A value is recognised as it stands and as JSON writes it. One that a task has encoded, compressed
//! or spelt out is not.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::Regex;
use serde_json::Value;

/// What stands in the place of what was masked.
pub const MASK: &str = "***";

/// The shortest value that is masked, in bytes: of a shorter one every other text is full.
pub const MIN_VALUE_BYTES: usize = 4;

/// The longest value that is masked as a whole, in bytes; of a longer one each part of this length.
const MAX_VALUE_BYTES: usize = 8 * 1024;

/// The values of one attempt.
#[derive(Debug)]
pub(super) struct Values {
    /// Sorted, so that those with a given beginning stand together.
    forms: Vec<Vec<u8>>,
    finder: AhoCorasick,
    longest: usize,
}

impl Values {
    /// A finder of all `values`; `None` if there is nothing to find.
    pub(super) fn new(values: &[Vec<u8>]) -> Option<Self> {
        let mut forms: Vec<Vec<u8>> = values.iter().flat_map(|value| forms(value)).collect();
        forms.sort_unstable();
        forms.dedup();
        let longest = forms.iter().map(Vec::len).max()?;
        // Fails only past two thousand million bytes of values. A DFA would be faster by little and take
        // megabytes for each long value.
        let finder = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::LeftmostLongest)
            .build(&forms)
            .ok()?;
        Some(Self { forms, finder, longest })
    }

    /// Appends to `out` what `held` and then `bytes` say, masked, and leaves in `held` the end that
    /// may be the beginning of a value.
    pub(super) fn pass(&self, held: &mut Vec<u8>, bytes: &[u8], out: &mut Vec<u8>) {
        held.extend_from_slice(bytes);
        let mut from = 0;
        loop {
            let found = self.finder.find(&held[from..]).map(|m| (from + m.start(), from + m.end()));
            // A match that begins before the last `longest` bytes has all it could need behind it.
            let far = held.len().saturating_sub(self.longest);
            let (start, end) = match found {
                Some((start, end)) if start < far => (start, end),
                _ => {
                    let open = self.open_end(held, from);
                    match found {
                        Some((start, end)) if start < open => (start, end),
                        _ => {
                            out.extend_from_slice(&held[from..open]);
                            held.drain(..open);
                            return;
                        }
                    }
                }
            };
            out.extend_from_slice(&held[from..start]);
            out.extend_from_slice(MASK.as_bytes());
            from = end;
        }
    }

    /// The same at the end of the stream: the beginning of a value is as telling as its end.
    pub(super) fn finish(held: &mut Vec<u8>, out: &mut Vec<u8>) {
        if held.len() < MIN_VALUE_BYTES {
            out.append(held);
        } else {
            held.clear();
            out.extend_from_slice(MASK.as_bytes());
        }
    }

    /// Where the longest end of `held` begins that is the beginning of a value and not all of it.
    fn open_end(&self, held: &[u8], from: usize) -> usize {
        let earliest = from.max(held.len().saturating_sub(self.longest - 1));
        (earliest..held.len())
            .find(|&at| {
                let end = &held[at..];
                // Of those that are more than it, one that begins with it would be the first.
                let after = self.forms.partition_point(|form| form.as_slice() <= end);
                self.forms.get(after).is_some_and(|form| form.starts_with(end))
            })
            .unwrap_or(held.len())
    }

    fn replace(&self, text: &[u8]) -> Vec<u8> {
        let (mut held, mut out) = (Vec::new(), Vec::with_capacity(text.len()));
        self.pass(&mut held, text, &mut out);
        Self::finish(&mut held, &mut out);
        out
    }
}

/// How a value may stand in a text: as it is, as JSON writes it, and, if it has several lines, each
/// of them by itself, with its indentation and without, because programs put something before each line.
fn forms(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms: Vec<Vec<u8>> = value.chunks(MAX_VALUE_BYTES).map(<[u8]>::to_vec).collect();
    let trimmed = value.trim_ascii();
    forms.push(trimmed.to_vec());
    for line in trimmed.split(|&byte| byte == b'\n') {
        forms.extend([line.trim_ascii_end(), line.trim_ascii()].map(<[u8]>::to_vec));
    }
    if let Ok(text) = std::str::from_utf8(trimmed)
        && let Ok(json) = serde_json::to_string(text)
    {
        forms.push(json.as_bytes()[1..json.len() - 1].to_vec());
    }
    forms.retain(|form| (MIN_VALUE_BYTES..=MAX_VALUE_BYTES).contains(&form.len()));
    forms
}

/// The text with every match replaced; matches of nothing are passed over.
pub(super) fn replace<'a>(pattern: &Regex, text: &'a str) -> Cow<'a, str> {
    let mut from = 0;
    let mut out = String::new();
    for found in pattern.find_iter(text).filter(|found| !found.is_empty()) {
        out.push_str(&text[from..found.start()]);
        out.push_str(MASK);
        from = found.end();
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

/// A message, masked by both. Its values are those that are valid UTF-8 in it.
pub(super) fn message(values: Option<&Values>, pattern: Option<&Regex>, text: &str) -> String {
    let text = match values {
        Some(values) => String::from_utf8_lossy(&values.replace(text.as_bytes())).into_owned(),
        None => text.to_owned(),
    };
    match pattern {
        Some(pattern) => replace(pattern, &text).into_owned(),
        None => text,
    }
}

/// The value with all of its texts replaced by what `mask` makes of them, and each number that it makes
/// something else of by that text. Results are nested 64 levels deep at most, or else as deep as they
/// could be read.
pub(super) fn json(value: Value, mask: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(mask(&text)),
        Value::Array(all) => all.into_iter().map(|one| json(one, mask)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, one)| (mask(&name), json(one, mask))).collect()
        }
        Value::Number(number) => {
            let text = number.to_string();
            let masked = mask(&text);
            if masked == text { Value::Number(number) } else { Value::String(masked) }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
