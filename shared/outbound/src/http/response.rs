//! The head of a response and its meaning.

use std::time::Duration;

use chrono::{DateTime, Utc};
use hyper::StatusCode;
use hyper::header::{HeaderMap, LOCATION, RETRY_AFTER};
use sexton_model::ticket::truncate;

/// The longest wait that is taken from a server's `Retry-After`.
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// The most bytes of a `Location` that a description repeats.
const LOCATION_MAX_BYTES: usize = 300;

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status.
    pub status: StatusCode,
    retry_after: Option<String>,
    location: Option<String>,
}

/// The meaning of a response for its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseMeaning {
    /// 2xx: the server accepted the request.
    Accepted,
    /// 408, 425, 429 and 5xx: the same request may be accepted later.
    RetryLater {
        /// The shortest wait, from the `Retry-After` header, at most [`RETRY_AFTER_MAX`].
        after: Option<Duration>,
    },
    /// Any other status, including redirects: sending the same request again cannot help.
    Rejected,
}

impl ResponseHead {
    pub(super) fn new(status: StatusCode, headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        Self {
            status,
            retry_after: text(RETRY_AFTER).map(str::to_owned),
            location: text(LOCATION).map(|value| truncate(value, LOCATION_MAX_BYTES).to_owned()),
        }
    }

    /// Returns the response's meaning; a date in `Retry-After` is counted from `now`.
    pub fn meaning(&self, now: DateTime<Utc>) -> ResponseMeaning {
        match self.status.as_u16() {
            200..=299 => ResponseMeaning::Accepted,
            408 | 425 | 429 | 500..=599 => {
                let after = self.retry_after.as_deref().and_then(|value| retry_after(value, now));
                ResponseMeaning::RetryLater { after }
            }
            _ => ResponseMeaning::Rejected,
        }
    }

    /// Describes the response in a sentence for people: the status, and the target of a redirect or otherwise
    /// `excerpt`, some text of the body.
    pub fn describe(&self, excerpt: Option<&str>) -> String {
        let status = self.status;
        let status_text = match status.canonical_reason() {
            Some(reason) => format!("{} {reason}", status.as_u16()),
            None => status.as_u16().to_string(),
        };
        if status.is_redirection() {
            let to = self.location.as_deref().unwrap_or("an address that it does not name");
            return format!(
                "the answer was {status_text} and points to {to}; redirects are not followed"
            );
        }
        match excerpt {
            Some(excerpt) => format!("the answer was {status_text}: {excerpt}"),
            None => format!("the answer was {status_text}"),
        }
    }
}

/// Parses a `Retry-After` into a wait of at most [`RETRY_AFTER_MAX`]: seconds, or a date. `None` if it is
/// neither; a past date is no wait.
fn retry_after(value: &str, now: DateTime<Utc>) -> Option<Duration> {
    let value = value.trim();
    let wait = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits only: a number that does not parse is larger than any wait.
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
        for status in 100..1000 {
            let head = ResponseHead::new(StatusCode::from_u16(status).unwrap(), &HeaderMap::new());
            let expected = match status {
                200..300 => ResponseMeaning::Accepted,
                408 | 425 | 429 | 500..600 => ResponseMeaning::RetryLater { after: None },
                _ => ResponseMeaning::Rejected,
            };
            assert_eq!(head.meaning(NOW.parse().unwrap()), expected, "{status}");
        }
    }
}
