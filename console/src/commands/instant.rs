//! Instants as people give them on the command line.

use chrono::{DateTime, NaiveDate, Utc};
use sexton_model::duration;

use crate::failure::Failure;

/// Reads `2025-12-01T08:00:00Z` (any offset), `2025-12-01` (midnight UTC) or `36h` (that long ago).
///
/// # Errors
///
/// [`Failure::Usage`] that says what can be written.
pub(crate) fn parse(
    option: &str,
    text: &str,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>, Failure> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(at.with_timezone(&Utc));
    }
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Ok(day.and_time(chrono::NaiveTime::MIN).and_utc());
    }
    duration::parse(text)
        .ok()
        .and_then(|ago| now.checked_sub_signed(chrono::Duration::from_std(ago).ok()?))
        .ok_or_else(|| {
            Failure::Usage(format!(
                "{option} {text:?} is no instant; write 2025-12-01T08:00:00Z, 2025-12-01 or, for \
                 so long ago, 36h"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_in_three_forms() {
        let now: DateTime<Utc> = "2026-01-03T00:00:00Z".parse().unwrap();
        for (text, at) in [
            ("2025-12-01T08:00:00+01:00", "2025-12-01T07:00:00Z"),
            ("2025-12-01", "2025-12-01T00:00:00Z"),
            ("36h", "2026-01-01T12:00:00Z"),
        ] {
            assert_eq!(parse("--since", text, now).unwrap(), at.parse::<DateTime<Utc>>().unwrap());
        }
        for text in ["", "yesterday", "2025-13-01", "-1h", "36"] {
            assert!(matches!(parse("--since", text, now), Err(Failure::Usage(_))), "{text}");
        }
    }
}
