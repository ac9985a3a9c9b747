//! Cron expressions: what people may write, and when it fires next, in UTC.
//!
//! # The dialect
//!
//! * Five fields (minute, hour, day-of-month, month, day-of-week) or six (second first), separated
//!   by blanks and tabs; or one of the macros `@yearly`, `@annually`, `@monthly`, `@weekly`,
//!   `@daily`, `@midnight`, `@hourly`.
//! * A field is a comma list of `*`, `*/n`, `a`, `a-b`, `a-b/n` and `a/n` (from `a` to the field's
//!   maximum). Months and weekdays have three-letter names in any case; weekdays count 0-7, and
//!   both 0 and 7 are Sunday, so `FRI-SUN` and `1/2` reach it. `?` is `*` in the two day fields.
//! * If neither day field begins with `*` or `?`, a day fires that either of them selects.
//!   Otherwise it must be selected by both, so `*/2` in one field narrows the other.
//!
//! # Guarantees
//!
//! Answers are whole seconds, strictly after the instant asked from, strictly increasing, and the
//! same whether asked for one at a time or as a list. Reading is linear in a bounded text; a search
//! takes at most a step for each month of a hundred years. No text and no instant makes it panic.
//!
//! # What it does not do
//!
//! Zones and their clock changes; `L`, `W`, `#` and `H`, which are refused and never ignored. It
//! does not decide what happens to an expression that never fires: `next_after` answers `None`,
//! and whoever accepts a job refuses it then.

mod error;
mod fields;
mod item;
mod search;
mod sets;
#[cfg(test)]
mod tests;

use std::iter;

use chrono::{DateTime, Months, NaiveDateTime, Utc};

pub use error::{CronError, ECHO_BYTES, Field, Reason};
pub use fields::MAX_BYTES;

use fields::Fields;
use sets::Sets;

/// How far ahead a firing is looked for. The calendar repeats its rarest day within 40 years, so an
/// expression that fires at all fires well inside of it.
const HORIZON: Months = Months::new(100 * 12);

/// How many fields an expression must have. Macros are accepted in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Five: minute, hour, day-of-month, month, day-of-week.
    Unix5,
    /// Six: the second, and then the five.
    Seconds6,
    /// Five or six; the count decides.
    Any,
}

/// A cron expression that has been read: bit masks, 56 bytes, its text forgotten.
///
/// Two are equal if their fields select the same numbers and combine the day fields alike, however
/// they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expression {
    sets: Sets,
}

impl Expression {
    /// Reads an expression of at most [`MAX_BYTES`] bytes.
    ///
    /// # Errors
    ///
    /// [`CronError`] names the first wrong field and item from the left, and what to write instead.
    /// An expression that is sound but never fires (`0 0 30 2 *`) is no error here.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, CronError> {
        Ok(Self { sets: Sets::read(Fields::split(text, dialect)?)? })
    }

    /// The first firing strictly after `from`, in whole seconds.
    ///
    /// `None` if there is none within 100 years of `from`, or before the last instant that can be
    /// represented.
    pub fn next_after(&self, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
        // Rounding down and adding one is strictly after for whole seconds and fractions alike.
        let first = DateTime::from_timestamp(from.timestamp().checked_add(1)?, 0)?;
        let last = from.naive_utc().checked_add_months(HORIZON).unwrap_or(NaiveDateTime::MAX);
        Some(self.sets.first_between(first.naive_utc(), last)?.and_utc())
    }

    /// All firings strictly after `from`, ascending: what [`Self::next_after`] answers when asked
    /// again from each answer. Has no end of its own for an expression that fires: take what is
    /// needed.
    pub fn iter_after(&self, from: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
        let mut cursor = Some(from);
        iter::from_fn(move || {
            cursor = self.next_after(cursor?);
            cursor
        })
    }
}
