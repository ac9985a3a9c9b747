//! The firings of a job from its cursor on: counted, found from the end and listed, without visiting those that are
//! only counted.
//!
//! Ranges are half-open everywhere here: from an instant on, and before another. So they can be split anywhere
//! without loss.

use std::iter;

use chrono::{DateTime, TimeDelta, Utc};

use super::{Gap, GapReason, Timetable};
use crate::job::Schedule;

/// The smallest step between two instants.
const SMALLEST_STEP: TimeDelta = TimeDelta::nanoseconds(1);

/// The firings from a cursor on.
#[derive(Clone, Copy)]
pub(super) struct Firings<'t> {
    timetable: &'t Timetable,
    /// This instant counts as a firing, whatever the timetable. `None`: the job has no further firing.
    cursor: Option<DateTime<Utc>>,
}

impl<'t> Firings<'t> {
    pub(super) fn new(timetable: &'t Timetable, cursor: DateTime<Utc>) -> Self {
        // A cursor on a job without a schedule is left from an earlier one: nothing is due.
        let cursor = Some(cursor).filter(|_| *timetable.schedule() != Schedule::None);
        Self { timetable, cursor }
    }

    /// Returns how many are from `from` on and before `until`.
    pub(super) fn count(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> u64 {
        let Some(cursor) = self.cursor else { return 0 };
        let of_timetable = self.timetable.count(from.max(after(cursor)), until);
        of_timetable + u64::from((from..until).contains(&cursor))
    }

    /// Returns the one with index `back` from the end of those that [`Self::count`] counts, whose last is the first.
    pub(super) fn nth_last(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
        back: u64,
    ) -> Option<DateTime<Utc>> {
        let cursor = self.cursor?;
        let begin = from.max(after(cursor));
        self.timetable.nth_last(begin, until, back).or_else(|| {
            let oldest = self.timetable.count(begin, until) + 1 == back;
            (oldest && (from..until).contains(&cursor)).then_some(cursor)
        })
    }

    /// Returns those from `from` on and before `until`, ascending. The caller knows that they are few.
    pub(super) fn list(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> impl Iterator<Item = DateTime<Utc>> + 't {
        let timetable = self.timetable;
        iter::successors(self.first_from(from), |firing| timetable.next_after(*firing))
            .take_while(move |firing| *firing < until)
    }

    /// Returns the first at `from` or after it.
    pub(super) fn first_from(&self, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let cursor = self.cursor?;
        if from <= cursor {
            return Some(cursor);
        }
        self.timetable.next_after(from.checked_sub_signed(SMALLEST_STEP).unwrap_or(from))
    }

    /// Returns the nominal time that separates the firings due before `at` from those due at it or later: each
    /// becomes due before the next nominal time, so this checks only the newest before `at`.
    pub(super) fn due_from(&self, at: DateTime<Utc>) -> DateTime<Utc> {
        let Some(from) = self.timetable.spread_from(at) else { return at };
        match self.nth_last(from, at, 1) {
            Some(newest) if self.timetable.due(newest) >= at => newest,
            _ => at,
        }
    }

    /// Returns those from `from` on and before `until`, as one gap; `None` without any.
    pub(super) fn gap(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
        reason: GapReason,
    ) -> Option<Gap> {
        let first = self.first_from(from).filter(|first| *first < until)?;
        let last = self.nth_last(first, until, 1)?;
        let count = u32::try_from(self.count(first, until)).unwrap_or(u32::MAX);
        Some(Gap { first, last, count: count.min(Gap::MAX_COUNT), reason })
    }
}

/// Returns the first instant after `at`.
pub(super) fn after(at: DateTime<Utc>) -> DateTime<Utc> {
    at.checked_add_signed(SMALLEST_STEP).unwrap_or(at)
}
