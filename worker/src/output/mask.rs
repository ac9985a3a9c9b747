//! Masks secrets before anything is stored.
//!
//! There are two kinds. *Values* are secrets that are known byte for byte; they are searched in the stream
//! itself, before it is split into lines, so that neither the pieces in which it is read nor the limit of a
//! line hides one. The *pattern* is a regular expression that is matched against each kept line and each
//! message.
//!
//! A value is recognised as it is and as JSON writes it. One that a task has encoded, compressed or spelt out
//! is not.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::Regex;
use serde_json::Value;

/// The text that replaces what was masked.
pub const MASK: &str = "***";

/// The shortest value that is masked, in bytes: shorter ones occur in nearly every text.
pub const MIN_VALUE_BYTES: usize = 4;

/// The longest value that is masked as a whole, in bytes; a longer one is masked in parts of this length.
const MAX_VALUE_BYTES: usize = 8 * 1024;

/// The values to mask for one attempt.
#[derive(Debug)]
pub(super) struct Values {
    /// Sorted, so that those with the same beginning are adjacent.
    forms: Vec<Vec<u8>>,
    finder: AhoCorasick,
    longest: usize,
}

impl Values {
    /// Creates a matcher of all `values`; `None` if there is nothing to match.
    pub(super) fn new(values: &[Vec<u8>]) -> Option<Self> {
        let mut forms: Vec<Vec<u8>> = values.iter().flat_map(|value| forms(value)).collect();
        forms.sort_unstable();
        forms.dedup();
        let longest = forms.iter().map(Vec::len).max()?;
        // Fails only beyond two thousand million bytes of values. A DFA would be slightly faster and take
        // megabytes for each long value.
        let finder = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::LeftmostLongest)
            .build(&forms)
            .ok()?;
        Some(Self { forms, finder, longest })
    }

    /// Appends `held` and then `bytes` to `out`, masked, and leaves in `held` the end that may be the beginning
    /// of a value.
    pub(super) fn pass(&self, held: &mut Vec<u8>, bytes: &[u8], out: &mut Vec<u8>) {
        held.extend_from_slice(bytes);
        let mut from = 0;
        loop {
            let found = self.finder.find(&held[from..]).map(|m| (from + m.start(), from + m.end()));
            // A match that begins before the last `longest` bytes is complete.
            let safe_end = held.len().saturating_sub(self.longest);
            let (start, end) = match found {
                Some((start, end)) if start < safe_end => (start, end),
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

    /// Flushes `held` at the end of the stream, masked: the beginning of a value reveals as much as its end.
    pub(super) fn finish(held: &mut Vec<u8>, out: &mut Vec<u8>) {
        if held.len() < MIN_VALUE_BYTES {
            out.append(held);
        } else {
            held.clear();
            out.extend_from_slice(MASK.as_bytes());
        }
    }

    /// Returns where the longest end of `held` begins that is a proper prefix of a value.
    fn open_end(&self, held: &[u8], from: usize) -> usize {
        let earliest = from.max(held.len().saturating_sub(self.longest - 1));
        (earliest..held.len())
            .find(|&at| {
                let end = &held[at..];
                // If any longer form begins with this end, it is the next one in the order.
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

/// Returns the forms in which a value may occur: as it is, as JSON writes it, and, if it has several lines,
/// each of them alone, with its indentation and without, because programs prefix lines.
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

/// Replaces every match in the text; empty matches are ignored.
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

/// Masks a message by values and pattern. Only values that are valid UTF-8 can occur in it.
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

/// Replaces all texts in the value by the result of `mask`, and each number whose text `mask` changes by the
/// changed text. Results are nested at most 64 levels deep, or as deep as the parser allowed.
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
