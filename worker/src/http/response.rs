//! What an answer means: pure functions of its head.

use std::time::Duration;

use chrono::{DateTime, Utc};
use hyper::StatusCode;
use hyper::header::{HeaderMap, LOCATION, RETRY_AFTER};
use sexton_model::ticket::truncate;

use crate::executor::Outcome;

/// The longest wait that a server's `Retry-After` can bring about.
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// The most bytes of a `Location` that are repeated.
const LOCATION_MAX_BYTES: usize = 300;

/// What the head of an answer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    retry_after: Option<Duration>,
    location: Option<String>,
}

impl Head {
    /// Reads the head; `now` is what a date in `Retry-After` is counted from.
    pub(super) fn new(status: StatusCode, headers: &HeaderMap, now: DateTime<Utc>) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        Self {
            status,
            retry_after: text(RETRY_AFTER).and_then(|value| retry_after(value, now)),
            location: text(LOCATION).map(|value| truncate(value, LOCATION_MAX_BYTES).to_owned()),
        }
    }

    /// What it means for the task; `words` are those of the answer's body.
    pub(super) fn outcome(&self, words: Option<&str>) -> Outcome {
        let status = self.status;
        if status.is_success() {
            return Outcome::Succeeded;
        }
        let class = format!("http_{}", status.as_u16());
        let named = match status.canonical_reason() {
            Some(reason) => format!("{} {reason}", status.as_u16()),
            None => status.as_u16().to_string(),
        };
        let message = match words {
            Some(words) => format!("the answer was {named}: {words}"),
            None => format!("the answer was {named}"),
        };
        match status.as_u16() {
            300..=399 => {
                let to = self.location.as_deref().unwrap_or("an address that it does not name");
                let said = "redirects are not followed: let the catalogue name the final address";
                let message = format!("the answer was {named} and points to {to}; {said}");
                Outcome::Permanent { class, message }
            }
            408 | 425 | 429 | 500..=599 => {
                Outcome::Retry { class, message, after: self.retry_after }
            }
            _ => Outcome::Permanent { class, message },
        }
    }
}

/// The wait that a `Retry-After` asks for, at most [`RETRY_AFTER_MAX`]: seconds, or a date. `None` if
/// it is neither; a date that has passed is no wait.
fn retry_after(value: &str, now: DateTime<Utc>) -> Option<Duration> {
    let value = value.trim();
    let wait = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits only: what does not fit is larger than any wait.
        Duration::from_secs(value.parse().unwrap_or(u64::MAX))
    } else {
        let at = DateTime::<Utc>::from(httpdate::parse_http_date(value).ok()?);
        (at - now).to_std().unwrap_or_default()
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "1994-11-06T08:49:00Z";

    fn wait(value: &str) -> Option<u64> {
        retry_after(value, NOW.parse().unwrap()).map(|wait| wait.as_secs())
    }

    #[test]
    fn retry_after_is_read_in_both_forms_and_bounded() {
        assert_eq!(wait("120"), Some(120));
        assert_eq!(wait(" 0 "), Some(0));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:37 GMT"), Some(37));
        assert_eq!(wait("Sunday, 06-Nov-94 08:49:37 GMT"), Some(37));
        assert_eq!(wait("Sun Nov  6 08:49:37 1994"), Some(37));
        assert_eq!(wait("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        let day = Some(RETRY_AFTER_MAX.as_secs());
        for long in ["86401", "99999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"] {
            assert_eq!(wait(long), day, "{long}");
        }
        for neither in ["", "-1", "1.5", "soon", "1994-11-06T08:49:37Z", "+5"] {
            assert_eq!(wait(neither), None, "{neither}");
        }
    }

    #[test]
    fn every_status_has_one_meaning() {
        let meaning = |status: u16| {
            let status = StatusCode::from_u16(status).unwrap();
            let head = Head::new(status, &HeaderMap::new(), NOW.parse().unwrap());
            match head.outcome(None) {
                Outcome::Succeeded => "done",
                Outcome::Retry { .. } => "retry",
                Outcome::Permanent { .. } => "permanent",
                _ => "other",
            }
        };
        for status in 100..1000 {
            let expected = match status {
                200..300 => "done",
                408 | 425 | 429 | 500..600 => "retry",
                _ => "permanent",
            };
            assert_eq!(meaning(status), expected, "{status}");
        }
    }
}
