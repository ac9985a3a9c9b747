//! A log-in that is under way at the provider: only the browser that began it can end it.
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

/// A log-in that is under way.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PendingLogIn {
    cookie: String,
    begun_at: DateTime<Utc>,
    next: String,
}

impl PendingLogIn {
    /// Begins a log-in.
    pub(super) fn new(next: &str, now: DateTime<Utc>) -> Result<Self, OperationError> {
        let next = if next.len() > MAX_NEXT_BYTES { "" } else { next };
        let (secret, encoded) = (random_text::<SECRET_BYTES>()?, URL_SAFE_NO_PAD.encode(next));
        let cookie = format!("{secret}.{}.{encoded}", now.timestamp());
        Ok(Self { cookie, begun_at: now, next: next.to_owned() })
    }

    /// Reads a cookie, however old it is; `None`: it is no cookie of a log-in.
    pub(super) fn read(cookie: &str) -> Option<Self> {
        let mut parts = cookie.splitn(3, '.');
        let (secret, begun_at, next) = (parts.next()?, parts.next()?, parts.next()?);
        let begun_at = DateTime::from_timestamp(begun_at.parse().ok()?, 0)?;
        if secret.len() != SECRET_CHARS {
            return None;
        }
        let next = String::from_utf8(URL_SAFE_NO_PAD.decode(next).ok()?).ok()?;
        Some(Self { cookie: cookie.to_owned(), begun_at, next })
    }

    /// Returns whether it may still end at `now`: it was not begun too long ago.
    pub(super) fn is_valid_at(&self, now: DateTime<Utc>) -> bool {
        let age = now - self.begun_at;
        // It may have been begun by another server, whose answer overtook nobody: all read the database's clock.
        (-TimeDelta::minutes(1)..=LIFETIME).contains(&age)
    }

    /// The cookie's value.
    pub(super) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Where the person goes after the log-in, as the address named it; empty: the address named nothing.
    pub(super) fn next(&self) -> &str {
        &self.next
    }

    /// What the provider sends back with the code.
    pub(super) fn state(&self) -> String {
        self.derive("state")
    }

    /// What the provider writes into the token.
    pub(super) fn nonce(&self) -> String {
        self.derive("nonce")
    }

    /// The verifier of PKCE, which is sent with the code; nobody else has it.
    pub(super) fn verifier(&self) -> String {
        self.derive("verifier")
    }

    /// The challenge of PKCE: the hash of the verifier, which the provider gets first.
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
        let pending = PendingLogIn::new("/jobs?a=b", at(0)).unwrap();
        let read = PendingLogIn::read(pending.cookie()).unwrap();
        assert!(read == pending && read.next() == "/jobs?a=b");
        assert!(read.is_valid_at(at(600)) && read.is_valid_at(at(-60)));
        assert!(!read.is_valid_at(at(601)) && !read.is_valid_at(at(-61)));
        for nonsense in ["", "a.b.c", "..", &format!("{}.x.", "a".repeat(43))] {
            assert!(PendingLogIn::read(nonsense).is_none(), "{nonsense}");
        }
        let long = PendingLogIn::new(&format!("/{}", "a".repeat(MAX_NEXT_BYTES)), at(0)).unwrap();
        assert_eq!(long.next(), "");
        assert!(long.cookie().len() < 100);
    }

    #[test]
    fn another_browser_time_or_destination_has_another_state() {
        let pending = PendingLogIn::new("/jobs", at(0)).unwrap();
        let mut seen =
            vec![pending.state(), pending.nonce(), pending.verifier(), pending.challenge()];
        assert!(seen.iter().all(|text| text.len() == 43));
        let secret = &pending.cookie()[..SECRET_CHARS];
        let encoded = |next| URL_SAFE_NO_PAD.encode(next);
        for changed in [
            format!("{secret}.{}.{}", NOW + 60, encoded("/jobs")),
            format!("{secret}.{NOW}.{}", encoded("/failed")),
            PendingLogIn::new("/jobs", at(0)).unwrap().cookie,
        ] {
            seen.push(PendingLogIn::read(&changed).unwrap().state());
        }
        let number = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), number);
        assert!(seen.iter().all(|text| !text.contains(secret)));
    }
}
