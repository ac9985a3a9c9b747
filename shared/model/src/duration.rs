//! Durations in people's notation: `500ms`, `30s`, `15m`, `1h30m`, `2d`.
//!
//! One or more parts, each a whole number and a unit, the largest unit first, every unit at most once. No fractions,
//! signs or blanks; a bare number is refused, because `30` could mean seconds or milliseconds. Parsing and formatting
//! are inverse for whole milliseconds. Bounds that depend on the use (a lease, a timeout) are checked where the use
//! is known.

use std::fmt::Write as _;
use std::time::Duration;

/// Maximum length of a text that is parsed, in bytes.
const MAX_TEXT_BYTES: usize = 64;
/// The longest duration: ten years of 366 days. Beyond it, arithmetic on instants could overflow.
pub const MAX: Duration = Duration::from_hours(3_660 * 24);

/// Units, largest first, in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text is empty.
    #[error("is empty; write a number and a unit, as in \"30s\"")]
    Empty,
    /// The text is longer than any duration.
    #[error("is longer than {MAX_TEXT_BYTES} bytes; write it as in \"1h30m\"")]
    TooLong,
    /// A number is missing before a unit, or the text has other characters.
    #[error("{0:?} is not a duration; write whole numbers with units, as in \"1h30m\"")]
    Number(String),
    /// A number lacks its unit.
    #[error("{0:?} lacks a unit; write one of d, h, m, s, ms after each number, as in \"30s\"")]
    NoUnit(String),
    /// An unknown unit.
    #[error("unit {0:?} is not known; the units are d, h, m, s and ms")]
    Unit(String),
    /// A unit appears twice, or a larger one after a smaller one.
    #[error("unit {0:?} stands twice or after a smaller one; write the largest unit first")]
    Order(&'static str),
    /// More than [`MAX`].
    #[error("is longer than ten years")]
    TooLarge,
}

/// Parses a duration. `0s` is valid.
///
/// # Errors
///
/// [`DurationError`], a fragment that fits after the name of the setting.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(DurationError::TooLong);
    }
    let mut remaining = text;
    let mut allowed = &UNITS[..];
    let mut total_ms: u64 = 0;
    while !remaining.is_empty() {
        let (digits, after) = split_at(remaining, |c| !c.is_ascii_digit());
        if digits.is_empty() {
            return Err(DurationError::Number(text.to_owned()));
        }
        let (unit, after) = split_at(after, |c| !c.is_ascii_alphabetic());
        if unit.is_empty() {
            return Err(match after.chars().next() {
                None => DurationError::NoUnit(text.to_owned()),
                Some(_) => DurationError::Number(text.to_owned()),
            });
        }
        let Some(&(name, unit_ms)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(DurationError::Unit(unit.to_owned()));
        };
        let Some(index) = allowed.iter().position(|(allowed, _)| *allowed == name) else {
            return Err(DurationError::Order(name));
        };
        allowed = &allowed[index + 1..];
        // It has only digits, so the one possible failure is that it is too large.
        let number: u64 = digits.parse().map_err(|_| DurationError::TooLarge)?;
        total_ms = number
            .checked_mul(unit_ms)
            .and_then(|part| total_ms.checked_add(part))
            .filter(|total| u128::from(*total) <= MAX.as_millis())
            .ok_or(DurationError::TooLarge)?;
        remaining = after;
    }
    Ok(Duration::from_millis(total_ms))
}

/// Formats a duration, the largest units first: `1h30m`, `500ms`, `0s`. Parts below a millisecond are dropped; no
/// duration of a job has any.
pub fn format(duration: Duration) -> String {
    let mut remaining = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if remaining == 0 {
        return "0s".to_owned();
    }
    let mut out = String::new();
    for (name, unit_ms) in UNITS {
        let number = remaining / unit_ms;
        remaining %= unit_ms;
        if number > 0 {
            // Writing to a String cannot fail.
            let _ = write!(out, "{number}{name}");
        }
    }
    out
}

/// Returns whole milliseconds, as the database stores durations.
pub fn to_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn split_at(text: &str, end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(end).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        for (text, ms) in [
            ("500ms", 500),
            ("15m", 900_000),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("90s", 90_000),
            ("0s", 0),
            ("3660d", 316_224_000_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused_with_the_reason() {
        for (text, error) in [
            ("", DurationError::Empty),
            ("30", DurationError::NoUnit("30".into())),
            ("1h30", DurationError::NoUnit("1h30".into())),
            ("m", DurationError::Number("m".into())),
            ("-5s", DurationError::Number("-5s".into())),
            ("1.5h", DurationError::Number("1.5h".into())),
            ("1h 30m", DurationError::Number("1h 30m".into())),
            ("5 s", DurationError::Number("5 s".into())),
            ("1w", DurationError::Unit("w".into())),
            ("5S", DurationError::Unit("S".into())),
            ("30m1h", DurationError::Order("h")),
            ("1s1s", DurationError::Order("s")),
            ("3660d1ms", DurationError::TooLarge),
            ("99999999999999999999999s", DurationError::TooLarge),
            ("18446744073709551615d", DurationError::TooLarge),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
        assert_eq!(parse(&"1".repeat(65)), Err(DurationError::TooLong));
    }

    proptest! {
        #[test]
        fn a_formatted_duration_reads_as_itself(ms in 0..=316_224_000_000_u64) {
            let duration = Duration::from_millis(ms);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[0-9dhms. é-]{0,70}") {
            if let Ok(duration) = parse(&text) {
                prop_assert!(duration <= MAX);
                prop_assert_eq!(parse(&format(duration)), Ok(duration));
            }
        }
    }
}
