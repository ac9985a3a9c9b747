//! The cursor of a page.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// The order of a list: by the time of the failure (or discard), then by id.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// The latest failure first.
    #[default]
    Newest,
    /// The oldest failure first.
    Oldest,
}

/// The position of a page's last row; the next page begins behind it. So rows that come and go meanwhile neither move
/// nor repeat the others: one that fails again is a new failure, at its new position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageCursor {
    /// The order it belongs to.
    pub order: Order,
    /// When the row failed, in whole microseconds, as the database keeps it.
    pub at: DateTime<Utc>,
    /// The execution.
    pub id: Uuid,
}

/// A text that is no cursor.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("is no cursor; give the one that the page before ended with")]
pub struct CursorError;

/// Digits of the instant.
const INSTANT_DIGITS: usize = 16;
/// Digits of the id.
const ID_DIGITS: usize = 32;

impl fmt::Display for PageCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match self.order {
            Order::Newest => 'n',
            Order::Oldest => 'o',
        };
        write!(f, "{order}{:016x}{}", self.at.timestamp_micros(), self.id.simple())
    }
}

impl FromStr for PageCursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let (order, digits) = match text.split_at_checked(1) {
            Some(("n", digits)) => (Order::Newest, digits),
            Some(("o", digits)) => (Order::Oldest, digits),
            _ => return Err(CursorError),
        };
        if digits.len() != INSTANT_DIGITS + ID_DIGITS
            || !digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            return Err(CursorError);
        }
        let (at, id) = digits.split_at(INSTANT_DIGITS);
        let micros = u64::from_str_radix(at, 16).map_err(|_| CursorError)?.cast_signed();
        let at = DateTime::from_timestamp_micros(micros).ok_or(CursorError)?;
        let id = u128::from_str_radix(id, 16).map_err(|_| CursorError)?;
        Ok(Self { order, at, id: Uuid::from_u128(id) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        for at in ["2026-01-01T00:00:00.123456Z", "1969-12-31T23:59:59.5Z"] {
            for order in [Order::Newest, Order::Oldest] {
                let at = at.parse().unwrap();
                let cursor = PageCursor { order, at, id: Uuid::from_u128(u128::MAX - 7) };
                assert_eq!(cursor.to_string().parse(), Ok(cursor));
            }
        }
        let all = "f".repeat(48);
        for text in ["", "n", "x", "ä", "n12", &format!("x{all}"), &format!("n7{}", &all[1..])] {
            assert_eq!(text.parse::<PageCursor>(), Err(CursorError), "{text}");
        }
    }
}
