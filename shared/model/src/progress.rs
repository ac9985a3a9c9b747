//! Progress lines: how a task reports its progress.
//!
//! ```text
//! ::progress 40 records=1200 file=a.csv
//! ```
//!
//! A whole line of standard output: the word, a number from 0 to 100 (per cent, a fraction may follow), and up to 20
//! values, `name=value`, without blanks in them. A line that is not exactly that is ordinary output.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The beginning of a progress line.
const LINE_PREFIX: &str = "::progress ";
/// The longest progress line, in bytes.
pub const MAX_LINE_BYTES: usize = 1024;
/// Maximum number of values.
pub const MAX_VALUES: usize = 20;
/// The longest name of a value, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// A task's last reported progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Per cent, 0 to 100.
    pub percent: f64,
    /// Numbers as numbers, everything else as text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Value>,
    /// When it was reported, by the worker's clock.
    pub at: DateTime<Utc>,
}

impl Progress {
    /// Makes the progress that a program reports without a line, within the same limits: a percentage outside of 0 to
    /// 100 becomes the nearest, NaN becomes 0, and values that do not fit are left out.
    pub fn clamped(percent: f64, values: BTreeMap<String, Value>, at: DateTime<Utc>) -> Self {
        // In this order, because NaN passes through `clamp`.
        let percent = percent.clamp(0.0, 100.0).max(0.0);
        let mut bytes = 0;
        let mut fits = |name: &str, value: &Value| {
            let text = match value {
                Value::String(text) => text,
                Value::Number(_) => &value.to_string(),
                _ => return false,
            };
            let sound = is_name(name) && !text.is_empty() && !text.chars().any(char::is_control);
            // The length as in a line.
            let more = name.len() + text.len() + 2;
            let room = sound && bytes + more <= MAX_LINE_BYTES - LINE_PREFIX.len();
            bytes += if room { more } else { 0 };
            room
        };
        let values = values.into_iter().filter(|(name, value)| fits(name, value));
        Self { percent, values: values.take(MAX_VALUES).collect(), at }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.percent)?;
        for (name, value) in &self.values {
            match value.as_str() {
                Some(text) => write!(f, " {name}={text}")?,
                None => write!(f, " {name}={value}")?,
            }
        }
        Ok(())
    }
}

/// Parses a line without its end; `None`: it is ordinary output.
pub fn parse(line: &str, at: DateTime<Utc>) -> Option<Progress> {
    let fields = line.strip_prefix(LINE_PREFIX).filter(|_| line.len() <= MAX_LINE_BYTES)?;
    let mut words = fields.split_ascii_whitespace();
    let percent = number(words.next()?).filter(|percent| (0.0..=100.0).contains(percent))?;
    let mut values = BTreeMap::new();
    for word in words {
        let (name, text) = word.split_once('=')?;
        let value = match number(text).and_then(|_| serde_json::from_str(text).ok()) {
            Some(number @ Value::Number(_)) => number,
            _ => Value::from(text),
        };
        if !is_name(name) || text.is_empty() || text.chars().any(char::is_control) {
            return None;
        }
        if values.insert(name.to_owned(), value).is_some() || values.len() > MAX_VALUES {
            return None;
        }
    }
    Some(Progress { percent, values, at })
}

/// Parses digits with an optional fraction: neither `inf` nor `1e9`.
fn number(text: &str) -> Option<f64> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    (digits(whole) && digits(fraction)).then(|| text.parse().ok()).flatten()
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(line: &str) -> Option<Value> {
        let progress = parse(line, DateTime::UNIX_EPOCH)?;
        Some(json!([progress.percent, progress.values]))
    }

    #[test]
    fn a_progress_line_is_a_percentage_and_values() {
        for (line, expected) in [
            ("::progress 40 records=1200", json!([40.0, {"records": 1200}])),
            ("::progress 0", json!([0.0, {}])),
            (
                "::progress 99.5  file=a.csv  n=-3 x=1.50",
                json!([99.5, {"file": "a.csv", "n": -3, "x": 1.5}]),
            ),
            ("::progress 100 who=Zoë id=007", json!([100.0, {"who": "Zoë", "id": "007"}])),
        ] {
            assert_eq!(read(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn progress_is_told_as_it_was_said_and_read_as_it_was_stored() {
        let progress =
            parse("::progress 40.5 records=1200 file=a.csv", DateTime::UNIX_EPOCH).unwrap();
        assert_eq!(progress.to_string(), "40.5 % file=a.csv records=1200");
        let stored = serde_json::to_value(&progress).unwrap();
        assert_eq!(serde_json::from_value::<Progress>(stored).unwrap(), progress);
        assert_eq!(parse("::progress 40", DateTime::UNIX_EPOCH).unwrap().to_string(), "40 %");
    }

    #[test]
    fn what_a_program_says_without_a_line_is_kept_within_the_same_limits() {
        let bounded = |percent, values: Value| {
            let values = serde_json::from_value(values).unwrap();
            let progress = Progress::clamped(percent, values, DateTime::UNIX_EPOCH);
            json!([progress.percent, progress.values])
        };
        let fine = json!({"records": 1200, "file": "two words.csv"});
        assert_eq!(bounded(40.5, fine.clone()), json!([40.5, fine]));
        assert_eq!(bounded(f64::NAN, json!({})), json!([0.0, {}]));
        assert_eq!(bounded(-1.0, json!({})), json!([0.0, {}]));
        assert_eq!(bounded(f64::INFINITY, json!({})), json!([100.0, {}]));
        let odd = json!({"": 1, "a b": 1, "c": "", "d": "\u{1b}[2J", "e": [1], "f": "x".repeat(2_000),
                         "g": 1});
        assert_eq!(bounded(1.0, odd), json!([1.0, {"g": 1}]));
        let many: BTreeMap<String, i32> = (0..50).map(|n| (format!("v{n}"), n)).collect();
        let lists = bounded(1.0, json!(many));
        assert_eq!(lists[1].as_object().map(serde_json::Map::len), Some(MAX_VALUES));
    }

    #[test]
    fn what_is_malformed_is_ordinary_output() {
        let long = format!("::progress 1 a={}", "x".repeat(MAX_LINE_BYTES));
        let many = (0..=MAX_VALUES).map(|n| format!(" v{n}=1")).collect::<Vec<_>>().concat();
        for line in [
            "::progress",
            "::progress ",
            "::progress x",
            "::progress 101",
            "::progress -1",
            "::progress 1e1",
            "::progress nan",
            "::progress 40 records",
            "::progress 40 =1",
            "::progress 40 a=",
            "::progress 40 a=1 a=2",
            "::progress 40 a=\u{1b}[2J",
            "::progress40",
            " ::progress 40",
            "::PROGRESS 40",
            &long,
            &format!("::progress 1{many}"),
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(fields in any::<String>()) {
            let _ = parse(&format!("{LINE_PREFIX}{fields}"), DateTime::UNIX_EPOCH);
        }
    }
}
