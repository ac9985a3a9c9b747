//! Limits how often somebody may try passwords.
//!
//! Each name has a limit for each address, so that nobody locks a person out from elsewhere, and each address has one for all names. An
//! attempt takes its permit before the password is compared, or many at the same time would pass; a right password gets it back.

use std::net::IpAddr;
use std::time::Duration;

use sexton_model::network::limited_unit;
use tokio::time::Instant;

use crate::rate_limit::RateLimit;

const PERIOD: Duration = Duration::from_mins(15);
/// Failed log-ins with one name from one address.
const PER_NAME: u32 = 10;
/// Failed log-ins from one address.
const PER_ADDRESS: u32 = 100;
/// Unknown tokens from one address, until it learns to wait.
const TOKENS: u32 = 100;

/// The failed attempts of this process's clients.
#[derive(Debug)]
pub(super) struct Attempts {
    by_name: RateLimit,
    by_address: RateLimit,
    tokens: RateLimit,
}

impl Attempts {
    pub(super) fn new() -> Self {
        let limit = |permits| RateLimit::new(permits, PERIOD, permits);
        Self { by_name: limit(PER_NAME), by_address: limit(PER_ADDRESS), tokens: limit(TOKENS) }
    }

    /// Takes the permits of an attempt.
    ///
    /// # Errors
    ///
    /// The time until there is one again.
    pub(super) fn take_permits(
        &self,
        name: &str,
        address: IpAddr,
        now: Instant,
    ) -> Result<(), Duration> {
        let address = limited_unit(address);
        self.by_address.take(&address, now)?;
        self.by_name
            .take(&(name, address), now)
            .inspect_err(|_| self.by_address.give_back(&address))
    }

    /// Gives the permits of an attempt back that did not fail for a wrong password.
    pub(super) fn forgive(&self, name: &str, address: IpAddr) {
        let address = limited_unit(address);
        self.by_address.give_back(&address);
        self.by_name.give_back(&(name, address));
    }

    /// Counts an unknown token.
    ///
    /// # Errors
    ///
    /// The time that its sender should wait.
    pub(super) fn unknown_token(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        self.tokens.take(&limited_unit(address), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_limited_by_address_and_an_address_for_all_names() {
        let attempts = Attempts::new();
        let now = Instant::now();
        let [here, neighbour, elsewhere] =
            ["2001:db8::1", "2001:db8::2", "203.0.113.7"].map(|text| text.parse().unwrap());
        for _ in 0..PER_NAME {
            attempts.take_permits("ann", here, now).unwrap();
        }
        let wait = attempts.take_permits("ann", here, now).unwrap_err();
        assert!(wait <= PERIOD / PER_NAME, "{wait:?}");
        attempts.take_permits("ann", neighbour, now).unwrap_err();
        // The person is not locked out, and neither is another at the same address.
        attempts.take_permits("ann", elsewhere, now).unwrap();
        attempts.take_permits("bob", here, now).unwrap();
        attempts.take_permits("ann", here, now + PERIOD / PER_NAME).unwrap();
        for number in 0.. {
            if attempts.take_permits(&format!("name{number}"), here, now).is_err() {
                // Those that the name's limit refused took nothing.
                assert!((80..=u64::from(PER_ADDRESS)).contains(&number), "{number}");
                break;
            }
        }
        attempts.take_permits("bob", elsewhere, now).unwrap();
    }

    #[test]
    fn right_passwords_use_up_nothing() {
        let attempts = Attempts::new();
        let (address, now) = ("203.0.113.7".parse().unwrap(), Instant::now());
        for _ in 0..2 * PER_ADDRESS {
            attempts.take_permits("ann", address, now).unwrap();
            attempts.forgive("ann", address);
        }
    }
}
