//! A month of the calendar, as masks of its days.

use chrono::{Datelike, NaiveDate};

/// Saturday and Sunday, where Sunday is 0.
const SATURDAY: u32 = 6;
const SUNDAY: u32 = 0;

/// The length of a month and the weekday of its first day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Month {
    last_day: u32,
    /// The weekday of its first day; 0 is Sunday.
    first_weekday: u32,
}

impl Month {
    /// Returns the month whose first day is `first`.
    pub(super) fn beginning(first: NaiveDate) -> Self {
        Self {
            last_day: u32::from(first.num_days_in_month()),
            first_weekday: first.weekday().num_days_from_sunday(),
        }
    }

    /// Returns the last day, 28 to 31.
    pub(super) fn last_day(self) -> u32 {
        self.last_day
    }

    /// Returns all its days, bit n for day n.
    pub(super) fn days(self) -> u64 {
        (2 << self.last_day) - 2
    }

    /// Returns its days on the given weekdays (bit 0 is Sunday), bit n for day n.
    pub(super) fn spread(self, weekdays: u8) -> u64 {
        let weekdays = u64::from(weekdays);
        // Bit 0 becomes the weekday of the month's first day.
        let week = (weekdays >> self.first_weekday | weekdays << (7 - self.first_weekday)) & 0x7f;
        (0..5).fold(0, |days, number| days | week << (7 * number)) << 1 & self.days()
    }

    /// Returns the Monday to Friday nearest to one of its days, inside the month.
    pub(super) fn workday_near(self, day: u32) -> u32 {
        match (self.first_weekday + day - 1) % 7 {
            SATURDAY if day > 1 => day - 1,
            SATURDAY => day + 2,
            SUNDAY if day < self.last_day => day + 1,
            SUNDAY => day - 2,
            _ => day,
        }
    }
}
