//! Finds the first and the last civil time that match a set of bit masks.
//!
//! The search uses only calendar and clock face: no zone, no instants. While the offset from UTC is constant, civil
//! time is linear, so a caller searches once in each such range, with the range's last second as the bound. UTC is
//! one range.
//!
//! It goes month by month with all days of a month in one mask, so that even a search for a day that never comes
//! takes only one step for each month of the range.

use chrono::{Datelike, Months, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

use super::sets::Sets;

impl Sets {
    /// Returns the first matching civil time in `from..=last`, in whole seconds.
    ///
    /// `from` must be a whole second: a fraction is ignored. Takes one step for each month between the two, so the
    /// caller bounds it by `last`.
    pub(super) fn first_between(
        &self,
        from: NaiveDateTime,
        last: NaiveDateTime,
    ) -> Option<NaiveDateTime> {
        let day = self.first_day(from.date(), last.date())?;
        let found = if day > from.date() {
            day.and_time(self.first_time(NaiveTime::MIN)?)
        } else if let Some(time) = self.first_time(from.time()) {
            day.and_time(time)
        } else {
            self.first_day(day.succ_opt()?, last.date())?.and_time(self.first_time(NaiveTime::MIN)?)
        };
        (found <= last).then_some(found)
    }

    /// Returns the last matching civil time in `first..=to`, in whole seconds.
    ///
    /// `to` must be a whole second: a fraction is ignored. Takes one step for each month between the two, so the
    /// caller bounds it by `first`.
    pub(super) fn last_between(
        &self,
        first: NaiveDateTime,
        to: NaiveDateTime,
    ) -> Option<NaiveDateTime> {
        let end_of_day = NaiveTime::from_hms_opt(23, 59, 59)?;
        let day = self.last_day(first.date(), to.date())?;
        let found = if day < to.date() {
            day.and_time(self.last_time(end_of_day)?)
        } else if let Some(time) = self.last_time(to.time()) {
            day.and_time(time)
        } else {
            self.last_day(first.date(), day.pred_opt()?)?.and_time(self.last_time(end_of_day)?)
        };
        (found >= first).then_some(found)
    }

    /// Returns the first matching day from `from` on; reads no month after that of `last`.
    fn first_day(&self, from: NaiveDate, last: NaiveDate) -> Option<NaiveDate> {
        let mut month = from.with_day(1)?;
        let mut days = at_or_above(self.days_in(month), from.day());
        while days == 0 {
            month = month.checked_add_months(Months::new(1))?;
            if month > last {
                return None;
            }
            days = self.days_in(month);
        }
        month.with_day(days.trailing_zeros())
    }

    fn first_time(&self, from: NaiveTime) -> Option<NaiveTime> {
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        let (first_minute, first_second) = (lowest(self.minutes)?, lowest(self.seconds)?);
        let (hour, minute, second) = if self.hours & (1 << hour) == 0 {
            (next(self.hours, hour)?, first_minute, first_second)
        } else if self.minutes & (1 << minute) != 0
            && let Some(second) = next(self.seconds, second)
        {
            (hour, minute, second)
        } else if let Some(minute) = next(self.minutes, minute + 1) {
            (hour, minute, first_second)
        } else {
            (next(self.hours, hour + 1)?, first_minute, first_second)
        };
        NaiveTime::from_hms_opt(hour, minute, second)
    }

    /// Returns the last matching day up to `to`; reads no month before that of `first`.
    fn last_day(&self, first: NaiveDate, to: NaiveDate) -> Option<NaiveDate> {
        let first_month = first.with_day(1)?;
        let mut month = to.with_day(1)?;
        let mut days = below(self.days_in(month), to.day() + 1);
        while days == 0 {
            month = month.checked_sub_months(Months::new(1))?;
            if month < first_month {
                return None;
            }
            days = self.days_in(month);
        }
        month.with_day(highest(days)?)
    }

    fn last_time(&self, to: NaiveTime) -> Option<NaiveTime> {
        let (hour, minute, second) = (to.hour(), to.minute(), to.second());
        if self.hours & (1 << hour) != 0 {
            if self.minutes & (1 << minute) != 0
                && let Some(second) = highest(below(self.seconds, second + 1))
            {
                return NaiveTime::from_hms_opt(hour, minute, second);
            }
            if let Some(minute) = highest(below(self.minutes, minute)) {
                return NaiveTime::from_hms_opt(hour, minute, highest(self.seconds)?);
            }
        }
        let hour = highest(below(self.hours, hour))?;
        NaiveTime::from_hms_opt(hour, highest(self.minutes)?, highest(self.seconds)?)
    }
}

/// Returns the members of `set` from `number` (at most 63) on.
fn at_or_above(set: u64, number: u32) -> u64 {
    set & (u64::MAX << number)
}

/// Returns the members of `set` below `number` (at most 63).
fn below(set: u64, number: u32) -> u64 {
    set & ((1 << number) - 1)
}

/// Returns the smallest member of `set` from `number` on; the sets of this module end at 59.
fn next(set: u64, number: u32) -> Option<u32> {
    lowest(at_or_above(set, number))
}

fn lowest(set: u64) -> Option<u32> {
    (set != 0).then(|| set.trailing_zeros())
}

fn highest(set: u64) -> Option<u32> {
    set.checked_ilog2()
}
