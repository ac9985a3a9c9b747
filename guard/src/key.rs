//! Keys of advisory locks.

use std::fmt;
use std::str::FromStr;

/// What a session's or a transaction's advisory lock is taken on.
///
/// PostgreSQL has two spaces of keys, which do not overlap: one number of 64 bits, or a pair of numbers of 32 bits (class
/// and object). Keys belong to one database: two databases of a server have each their own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Key {
    /// One number, as in `pg_try_advisory_lock(bigint)`.
    ///
    /// Services in JavaScript round numbers above 2^53 − 1, so a key that such a service takes as well lies below.
    Number(i64),
    /// Class and object, as in `pg_try_advisory_lock(integer, integer)`.
    Pair(i32, i32),
}

impl Key {
    /// The arguments of PostgreSQL's functions. They are digits and signs, so no value can change the statement.
    ///
    /// Each is quoted and cast, since `-2147483648::int` is the negation of a number that is too large.
    pub(crate) fn arguments(self) -> String {
        match self {
            Self::Number(number) => format!("'{number}'::bigint"),
            Self::Pair(class, object) => format!("'{class}'::int, '{object}'::int"),
        }
    }
}

impl From<i64> for Key {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<(i32, i32)> for Key {
    fn from((class, object): (i32, i32)) -> Self {
        Self::Pair(class, object)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Pair(class, object) => write!(f, "({class}, {object})"),
        }
    }
}

/// A text that is no key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is no lock key; write a whole number from -9223372036854775808 to 9223372036854775807, or two from -2147483648 \
     to 2147483647 with a comma between them"
)]
pub struct InvalidKey(String);

/// The longest text of a wrong key that an error repeats, in characters.
const MAX_SHOWN: usize = 60;

impl FromStr for Key {
    type Err = InvalidKey;

    /// Reads `5101`, or `42,7` for a pair; blanks around the numbers do not count.
    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let invalid = || InvalidKey(text.chars().take(MAX_SHOWN).collect());
        match text.split_once(',') {
            None => text.trim().parse().map(Self::Number).map_err(|_| invalid()),
            Some((class, object)) => {
                let class = class.trim().parse().map_err(|_| invalid())?;
                let object = object.trim().parse().map_err(|_| invalid())?;
                Ok(Self::Pair(class, object))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written() {
        assert_eq!("5101".parse(), Ok(Key::Number(5101)));
        assert_eq!(" -9223372036854775808 ".parse(), Ok(Key::Number(i64::MIN)));
        assert_eq!("42, -2147483648".parse(), Ok(Key::Pair(42, i32::MIN)));
        assert_eq!(Key::Pair(i32::MIN, 7).arguments(), "'-2147483648'::int, '7'::int");
    }

    #[test]
    fn what_is_no_key_is_refused_with_the_range() {
        for text in ["", "a", "9223372036854775808", "1.5", "1,2,3", "2147483648,1", "1,", "0x10"] {
            let error = text.parse::<Key>().unwrap_err().to_string();
            assert!(error.contains("9223372036854775807"), "{error}");
        }
        let long = "9".repeat(10_000).parse::<Key>().unwrap_err().to_string();
        assert!(long.len() < 400, "{long}");
    }
}
