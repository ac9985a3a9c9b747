//! A log-in that a browser has begun, and only that browser can end.
//!
//! Its cookie has a secret of 256 random bits, when it was begun, and where to go then. What the provider gets (state, nonce, the challenge
//! of PKCE) are hashes of the whole of it. So the server keeps nothing, any of several servers can end what another began, and a cookie in
//! which something was changed belongs to no state.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use ring::digest::{SHA256, digest};
use sexton_operations::error::OperationError;
use sexton_operations::secret_text::random_text;

/// How long a log-in may take.
pub(super) const LIFETIME: TimeDelta = TimeDelta::minutes(10);
const SECRET_BYTES: usize = 32;
const SECRET_CHARS: usize = 43;
/// The longest address to go to then; longer ones lead to the first page.
const MAX_NEXT_BYTES: usize = 2_000;

/// A log-in that was begun.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Begun {
    cookie: String,
    at: DateTime<Utc>,
    next: String,
}

impl Begun {
    /// Begins one.
    pub(super) fn new(next: &str, now: DateTime<Utc>) -> Result<Self, OperationError> {
        let next = if next.len() > MAX_NEXT_BYTES { "" } else { next };
        let (secret, encoded) = (random_text::<SECRET_BYTES>()?, URL_SAFE_NO_PAD.encode(next));
        let cookie = format!("{secret}.{}.{encoded}", now.timestamp());
        Ok(Self { cookie, at: now, next: next.to_owned() })
    }

    /// Reads a cookie, whatever its age; `None`: it is none.
    pub(super) fn read(cookie: &str) -> Option<Self> {
        let mut parts = cookie.splitn(3, '.');
        let (secret, at, next) = (parts.next()?, parts.next()?, parts.next()?);
        let at = DateTime::from_timestamp(at.parse().ok()?, 0)?;
        if secret.len() != SECRET_CHARS {
            return None;
        }
        let next = String::from_utf8(URL_SAFE_NO_PAD.decode(next).ok()?).ok()?;
        Some(Self { cookie: cookie.to_owned(), at, next })
    }

    /// Returns whether it may end now, or was begun too long ago.
    pub(super) fn counts(&self, now: DateTime<Utc>) -> bool {
        let age = now - self.at;
        // It may have been begun by another server, whose answer overtook nobody: all read the database's clock.
        (-TimeDelta::minutes(1)..=LIFETIME).contains(&age)
    }

    /// The cookie's value.
    pub(super) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Where to go then, as the address said it; empty: it said nothing.
    pub(super) fn next(&self) -> &str {
        &self.next
    }

    /// What the provider sends back with the code.
    pub(super) fn state(&self) -> String {
        self.derive("state")
    }

    /// What it writes into the token.
    pub(super) fn nonce(&self) -> String {
        self.derive("nonce")
    }

    /// By which the code is exchanged; nobody else has it.
    pub(super) fn verifier(&self) -> String {
        self.derive("verifier")
    }

    /// What the provider has of it meanwhile.
    pub(super) fn challenge(&self) -> String {
        hash(&self.verifier())
    }

    fn derive(&self, purpose: &str) -> String {
        hash(&format!("{purpose}\n{}", self.cookie))
    }
}

fn hash(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(NOW + seconds, 0).unwrap()
    }

    #[test]
    fn what_was_begun_is_read_again_for_ten_minutes() {
        let begun = Begun::new("/jobs?a=b", at(0)).unwrap();
        let read = Begun::read(begun.cookie()).unwrap();
        assert!(read == begun && read.next() == "/jobs?a=b");
        assert!(read.counts(at(600)) && read.counts(at(-60)));
        assert!(!read.counts(at(601)) && !read.counts(at(-61)));
        for nonsense in ["", "a.b.c", "..", &format!("{}.x.", "a".repeat(43))] {
            assert!(Begun::read(nonsense).is_none(), "{nonsense}");
        }
        let long = Begun::new(&format!("/{}", "a".repeat(MAX_NEXT_BYTES)), at(0)).unwrap();
        assert_eq!(long.next(), "");
        assert!(long.cookie().len() < 100);
    }

    #[test]
    fn another_browser_time_or_destination_has_another_state() {
        let begun = Begun::new("/jobs", at(0)).unwrap();
        let mut seen = vec![begun.state(), begun.nonce(), begun.verifier(), begun.challenge()];
        assert!(seen.iter().all(|text| text.len() == 43));
        let secret = &begun.cookie()[..SECRET_CHARS];
        let encoded = |next| URL_SAFE_NO_PAD.encode(next);
        for changed in [
            format!("{secret}.{}.{}", NOW + 60, encoded("/jobs")),
            format!("{secret}.{NOW}.{}", encoded("/failed")),
            Begun::new("/jobs", at(0)).unwrap().cookie,
        ] {
            seen.push(Begun::read(&changed).unwrap().state());
        }
        let number = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), number);
        assert!(seen.iter().all(|text| !text.contains(secret)));
    }
}
