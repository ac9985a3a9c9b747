//! Cron expressions: what people may write, and when it fires next in a zone.
//!
//! # The dialect
//!
//! * Five fields (minute, hour, day-of-month, month, day-of-week) or six (second first), separated
//!   by blanks and tabs; or one of the macros `@yearly`, `@annually`, `@monthly`, `@weekly`,
//!   `@daily`, `@midnight`, `@hourly`.
//! * A field is a comma list of `*`, `*/n`, `a`, `a-b`, `a-b/n` and `a/n` (from `a` to the field's
//!   maximum). Months and weekdays have three-letter names in any case; weekdays count 0-7, and
//!   both 0 and 7 are Sunday, so `FRI-SUN` and `1/2` reach it. `?` is `*` in the two day fields.
//! * Day-of-month also knows `L` (the last day), `L-n`, `LW` (the last Monday to Friday) and `nW`
//!   (the Monday to Friday nearest to day n, inside the month), day-of-week `nL` (the last such
//!   weekday) and `n#k` (the k-th). They cannot stand in a list with `*`.
//! * `H`, `H/n` and `H(a-b)` in any field are numbers that depend on the job's name.
//! * Where both day fields restrict the days, a [`DayRule`] says whether both of them must select a day
//!   or either suffices. Without it the text decides, as in Vixie's cron: if neither field begins with
//!   `*` or `?`, either suffices; otherwise both must select, so `*/2` in one field narrows the other.
//!   A day that a month does not have does not fire.
//! * An expression whose minute or hour begins with `*` is a *wildcard*: every instant whose wall
//!   clock matches fires, also when the clocks show it twice; what they pass over does not. All
//!   others name *fixed* times of the day, for which [`Dst`] decides.
//!
//! # Guarantees
//!
//! Answers are whole seconds in UTC, strictly after the given instant, strictly increasing,
//! the same from every instant since the previous one, and the same one at a time
//! or as a list. Reading is linear in a bounded text; a search looks at what is near a wall time
//! that matches, and takes at most a step for each month of a hundred years to find the next. No
//! text and no instant makes it panic.
//!
//! # What it does not do
//!
//! It does not decide what happens to an expression that never fires: `next_after` answers `None`,
//! and the check of the jobs file refuses the job.

mod anomalies;
mod count;
mod day_rule;
mod dst;
mod error;
mod fields;
mod item;
mod month;
mod relative;
mod search;
mod sets;
mod spread;
#[cfg(test)]
pub(crate) mod tests;
mod words;
mod zoned;

use std::iter;

use chrono::{DateTime, Utc};

use crate::zone::Zone;

pub use anomalies::{Anomaly, AnomalyKind};
pub use day_rule::{DayRule, restricts_days_twice};
pub use dst::Dst;
pub use error::{CronError, Field, MAX_ECHO_BYTES, Reason};
pub use fields::MAX_EXPRESSION_BYTES;
pub use words::describe;
// For the lint, which judges the notation.
pub(crate) use fields::{Fields, is_starred};
pub(crate) use item::{Item, parse_number};

use count::second_from;
use sets::Sets;
use zoned::Zoned;

/// The number of fields that an expression must have. Each dialect accepts macros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Five: minute, hour, day-of-month, month, day-of-week.
    Unix5,
    /// Six: the second, and then the five.
    Seconds6,
    /// Five or six; the count decides.
    Any,
}

/// A parsed cron expression: bit masks, about a hundred bytes, without its text.
///
/// Two are equal if their fields select the same, combine the day fields in the same way and react to clock changes
/// in the same way, however they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expression {
    sets: Sets,
    /// Whether minute or hour begins with `*`.
    wildcard: bool,
}

impl Expression {
    /// Parses an expression of at most [`MAX_EXPRESSION_BYTES`] bytes, which combines its day fields as Vixie's cron
    /// does. `name` is the job's, which determines the numbers of `H`.
    ///
    /// # Errors
    ///
    /// As [`Self::parse_with_days`].
    pub fn parse(text: &str, dialect: Dialect, name: &str) -> Result<Self, CronError> {
        Self::parse_with_days(text, dialect, name, None)
    }

    /// Parses an expression whose day fields are combined as `days` says; `None`: as [`Self::parse`] does.
    ///
    /// Of a text that needs no `days` ([`restricts_days_twice`]), every value gives the same expression.
    ///
    /// # Errors
    ///
    /// [`CronError`] names the first wrong field and item from the left, and a valid form. A valid expression that
    /// never fires (`0 0 30 2 *`) is no error here.
    pub fn parse_with_days(
        text: &str,
        dialect: Dialect,
        name: &str,
        days: Option<DayRule>,
    ) -> Result<Self, CronError> {
        let fields = Fields::split(text, dialect)?;
        let wildcard = is_starred(fields.minute) || is_starred(fields.hour);
        Ok(Self { sets: Sets::read(fields, name, days)?, wildcard })
    }

    /// Returns the first firing strictly after `from`, in whole seconds.
    ///
    /// `None` if no firing lies within 100 years of `from`, or before the last instant that can be represented.
    pub fn next_after(&self, from: DateTime<Utc>, zone: Zone, dst: Dst) -> Option<DateTime<Utc>> {
        Zoned { expression: self, zone, dst }.first_after(from)
    }

    /// Returns the number of firings from `from` on and before `until`.
    ///
    /// Costs a step for every two days and every month in between, and none for a firing.
    pub fn count(&self, from: DateTime<Utc>, until: DateTime<Utc>, zone: Zone, dst: Dst) -> u64 {
        Zoned { expression: self, zone, dst }
            .count_between(second_from(from), second_from(until) - 1)
    }

    /// Returns the firing with index `back` from the end of those that [`Self::count`] counts, whose last is the
    /// first; `None` if there are fewer. Costs about three times as much.
    pub fn nth_last(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
        back: u64,
        zone: Zone,
        dst: Dst,
    ) -> Option<DateTime<Utc>> {
        let zoned = Zoned { expression: self, zone, dst };
        let found_s = zoned.nth_last(second_from(from), second_from(until) - 1, back)?;
        DateTime::from_timestamp(found_s, 0)
    }

    /// Returns how it combines its day fields; [`DayRule::Both`] where one of them is `*` or `?` alone.
    pub const fn day_rule(&self) -> DayRule {
        self.sets.day_rule
    }

    /// Returns what its fields select.
    pub(crate) const fn sets(&self) -> &Sets {
        &self.sets
    }

    /// Yields all firings strictly after `from`, ascending, as repeated calls of [`Self::next_after`] would. Endless
    /// for an expression that fires: the caller limits it.
    pub fn iter_after(
        &self,
        from: DateTime<Utc>,
        zone: Zone,
        dst: Dst,
    ) -> impl Iterator<Item = DateTime<Utc>> + use<> {
        let expression = *self;
        let mut cursor = Some(from);
        iter::from_fn(move || {
            cursor = expression.next_after(cursor?, zone, dst);
            cursor
        })
    }
}

/// Returns whether the firings of `text` depend on the name of its job: it contains an `H`.
pub fn depends_on_name(text: &str) -> bool {
    // No other item begins with that letter, and macros have no items.
    text.split([' ', '\t', ',']).any(|item| item.starts_with(['H', 'h']))
}
