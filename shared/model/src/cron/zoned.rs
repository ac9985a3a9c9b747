//! Finds the first instant at which an expression fires in a zone.
//!
//! Between two clock changes wall time is linear, so the civil search of `search` finds the first match; at the
//! changes themselves a job's [`Dst`] decides. The search reads only nearby data of the zone: it searches a window,
//! and if that has no firing, continues just before the next matching wall time, since no firing is farther from its
//! wall time than a zone's clocks can be from UTC.
//!
//! Instants and wall times are counted in seconds here, the latter as if they were UTC.

use chrono::{DateTime, Months, NaiveDateTime, Utc};

use super::{Dst, Expression};
use crate::zone::{FARTHEST_OFFSET_S, LONGEST_REPETITION_S, Zone};

/// How far ahead a firing is searched. The calendar repeats its rarest day within 40 years, so an expression that
/// fires at all fires well within it.
const HORIZON: Months = Months::new(100 * 12);

/// Length of a search window, in seconds. Long enough to contain the wall time before which a search continues,
/// whatever the offset; short enough to contain at most one clock change.
const WINDOW_S: i64 = 2 * 86_400;

/// An expression in a zone.
#[derive(Clone, Copy)]
pub(super) struct Zoned<'e> {
    pub(super) expression: &'e Expression,
    pub(super) zone: Zone,
    pub(super) dst: Dst,
}

/// A clock change.
#[derive(Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "the unit stands last in a name")]
pub(super) struct ClockChange {
    /// The first instant after the change.
    pub(super) at_s: i64,
    /// The offset from UTC before it.
    pub(super) before_s: i64,
    /// The offset from UTC after it.
    pub(super) after_s: i64,
}

impl Zoned<'_> {
    /// Returns the first firing strictly after `from`, within the horizon.
    pub(super) fn first_after(&self, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let last = from.naive_utc().checked_add_months(HORIZON).unwrap_or(NaiveDateTime::MAX);
        let last_s = last.and_utc().timestamp();
        // Rounding down and adding one is strictly after for whole seconds and fractions alike.
        let mut from_s = from.timestamp().checked_add(1)?;
        while from_s <= last_s {
            let to_s = last_s.min(from_s.saturating_add(WINDOW_S));
            if let Some(found_s) = self.first_between(from_s, to_s) {
                return DateTime::from_timestamp(found_s, 0);
            }
            // Its instant is at most this much earlier or later than the wall time.
            let matching_s =
                self.first_wall(to_s + 1 - FARTHEST_OFFSET_S, last_s + FARTHEST_OFFSET_S)?;
            from_s = (to_s + 1).max(matching_s - FARTHEST_OFFSET_S);
        }
        None
    }

    /// Returns the first firing in `from_s..=to_s`, which is no longer than a window.
    fn first_between(&self, from_s: i64, to_s: i64) -> Option<i64> {
        let mut offset_s = self.zone.offset_s(from_s);
        let mut begin_s = from_s;
        if !self.expression.wildcard
            && let Some(clock_change) = self.clock_change(from_s - LONGEST_REPETITION_S, from_s)
        {
            if clock_change.at_s == from_s && self.fires_at(clock_change) {
                return Some(from_s);
            }
            begin_s = from_s.max(self.first_pass_ends(clock_change));
        }
        let mut settled_s = from_s;
        loop {
            let found_s = self
                .first_wall(begin_s + offset_s, to_s + offset_s)
                .map(|wall_s| wall_s - offset_s);
            let Some(clock_change) = self.clock_change(settled_s, found_s.unwrap_or(to_s)) else {
                return found_s;
            };
            if self.fires_at(clock_change) {
                return Some(clock_change.at_s);
            }
            begin_s = self.first_pass_ends(clock_change);
            offset_s = clock_change.after_s;
            settled_s = clock_change.at_s;
        }
    }

    /// Returns whether a fixed time of the day that the clocks skip there fires at that instant.
    pub(super) fn fires_at(&self, clock_change: ClockChange) -> bool {
        let ClockChange { at_s, before_s, after_s } = clock_change;
        !self.expression.wildcard
            && self.dst != Dst::Skip
            && before_s < after_s
            && self.first_wall(at_s + before_s, at_s + after_s - 1).is_some()
    }

    /// Returns the first instant after the change at which a matching wall time fires: where the clocks were set
    /// back, repeated times do not, unless the policy wants them.
    pub(super) fn first_pass_ends(&self, clock_change: ClockChange) -> i64 {
        let repeated_s = (clock_change.before_s - clock_change.after_s).max(0);
        if self.expression.wildcard || self.dst == Dst::Wall {
            clock_change.at_s
        } else {
            clock_change.at_s + repeated_s
        }
    }

    /// Returns the first clock change after `from_s`, up to and including `to_s`.
    pub(super) fn clock_change(&self, from_s: i64, to_s: i64) -> Option<ClockChange> {
        let at_s = self.zone.first_change_s(from_s, to_s)?;
        Some(ClockChange {
            at_s,
            before_s: self.zone.offset_s(at_s - 1),
            after_s: self.zone.offset_s(at_s),
        })
    }

    /// Returns the first matching wall time in `from_s..=last_s`.
    pub(super) fn first_wall(&self, from_s: i64, last_s: i64) -> Option<i64> {
        let (from, last) = representable(from_s, last_s)?;
        Some(self.expression.sets.first_between(from, last)?.and_utc().timestamp())
    }

    /// Returns the last matching wall time in `first_s..=to_s`.
    pub(super) fn last_wall(&self, first_s: i64, to_s: i64) -> Option<i64> {
        let (first, to) = representable(first_s, to_s)?;
        Some(self.expression.sets.last_between(first, to)?.and_utc().timestamp())
    }
}

/// Returns the ends of a range of wall times, clamped to the instants that can be represented.
fn representable(from_s: i64, to_s: i64) -> Option<(NaiveDateTime, NaiveDateTime)> {
    let from_s = from_s.max(DateTime::<Utc>::MIN_UTC.timestamp());
    let to_s = to_s.min(DateTime::<Utc>::MAX_UTC.timestamp());
    let from = DateTime::from_timestamp(from_s, 0)?.naive_utc();
    let to = DateTime::from_timestamp(to_s, 0)?.naive_utc();
    Some((from, to))
}
