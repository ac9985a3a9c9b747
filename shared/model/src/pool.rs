//! The name of a worker pool: a main queue of its own, with its own workers.
//!
//! The name becomes part of queue names, so its alphabet is narrow enough that no two queues of a namespace can
//! collide. This module does not know whether a pool has workers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest pool name, in bytes.
pub const MAX_POOL_NAME_BYTES: usize = 31;

/// A valid pool name: `[a-z][a-z0-9-]{0,30}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PoolName(String);

/// A text that cannot name a pool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolNameError {
    /// The name is empty.
    #[error("pool name is empty; leave it out for the pool `default`")]
    Empty,
    /// More than [`MAX_POOL_NAME_BYTES`].
    #[error("pool name of {0} bytes is too long: {MAX_POOL_NAME_BYTES} at most")]
    TooLong(usize),
    /// A character that queue names cannot have, or not at the beginning.
    #[error(
        "pool name {0:?} is not valid: a lower-case letter first, then lower-case letters, digits \
         and hyphens"
    )]
    Character(String),
}

impl PoolName {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// [`PoolNameError`], which shows a valid name.
    pub fn new(name: impl Into<String>) -> Result<Self, PoolNameError> {
        let name = name.into();
        let Some(first) = name.chars().next() else {
            return Err(PoolNameError::Empty);
        };
        if name.len() > MAX_POOL_NAME_BYTES {
            return Err(PoolNameError::TooLong(name.len()));
        }
        let rest_fits = name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if !first.is_ascii_lowercase() || !rest_fits {
            return Err(PoolNameError::Character(name));
        }
        Ok(Self(name))
    }

    /// Returns the pool of jobs that name none.
    pub fn default_pool() -> Self {
        Self("default".to_owned())
    }

    /// Returns whether this is [`PoolName::default_pool`], whose queues have no pool name.
    pub fn is_default(&self) -> bool {
        self.0 == "default"
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PoolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PoolName {
    type Err = PoolNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl TryFrom<String> for PoolName {
    type Error = PoolNameError;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl From<PoolName> for String {
    fn from(name: PoolName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_fit_the_alphabet_are_accepted() {
        for name in ["default", "a", "eu-west-1", "a23456789-123456789-123456789-1"] {
            assert_eq!(PoolName::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn names_that_could_collide_with_another_queue_are_refused() {
        assert_eq!(PoolName::new(""), Err(PoolNameError::Empty));
        assert_eq!(PoolName::new("a".repeat(32)), Err(PoolNameError::TooLong(32)));
        for name in ["1a", "-a", "A", "a_b", "a.b", "a b", "ä", "a\n"] {
            assert!(
                matches!(PoolName::new(name), Err(PoolNameError::Character(_))),
                "{name:?} was accepted"
            );
        }
    }

    #[test]
    fn a_stored_name_is_checked_when_it_is_read() {
        assert!(serde_json::from_str::<PoolName>("\"batch\"").is_ok());
        assert!(serde_json::from_str::<PoolName>("\"Batch\"").is_err());
    }
}
