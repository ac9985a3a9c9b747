//! The keys of advisory locks.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// The key of an advisory lock. The two forms never exclude one another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum LockKey {
    /// One number, as in `pg_advisory_lock(5101)`.
    Number(i64),
    /// A class and an object, as in `pg_advisory_lock(7, 1)`.
    Pair(i32, i32),
}

/// A text that is no key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is no key of an advisory lock: write a number of 64 bits, or two of 32 bits as in 7,1"
)]
pub struct InvalidLockKey(String);

impl FromStr for LockKey {
    type Err = InvalidLockKey;

    fn from_str(text: &str) -> Result<Self, InvalidLockKey> {
        let bare = text.trim();
        let bare = bare.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(bare);
        let key = match bare.split_once(',') {
            None => bare.parse().ok().map(Self::Number),
            Some((class, object)) => {
                let class = class.trim().parse().ok();
                class
                    .zip(object.trim().parse().ok())
                    .map(|(class, object)| Self::Pair(class, object))
            }
        };
        key.ok_or_else(|| InvalidLockKey(sexton_model::ticket::truncate(text, 60).to_owned()))
    }
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Pair(class, object) => write!(f, "{class},{object}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_shown() {
        for key in [
            LockKey::Number(i64::MIN),
            LockKey::Number(-1),
            LockKey::Number(5101),
            LockKey::Pair(i32::MIN, i32::MAX),
        ] {
            assert_eq!(key.to_string().parse(), Ok(key));
        }
        for text in ["(7, 1)", "7,1", " 7 , 1 "] {
            assert_eq!(text.parse(), Ok(LockKey::Pair(7, 1)), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_key_is_refused() {
        for text in
            ["", "tokenCleanup", "9223372036854775808", "1,2,3", "1,", "2147483648,1", "1.5"]
        {
            let refused = text.parse::<LockKey>().unwrap_err().to_string();
            assert!(refused.contains("64 bits"), "{refused}");
        }
    }
}
