//! Days that have another date in every month: `L`, `L-n`, `LW`, `nW`, `nL` and `n#k`.
//!
//! They are stored as written and resolved for one month at a time, as a mask of its days. A day that a month does
//! not have is left out of the mask.

use super::error::{Field, Reason};
use super::item::{WEEKDAYS, parse_number, parse_value};
use super::month::Month;

/// The farthest day before the last of a month that a month can have.
const MAX_BEFORE_LAST: u8 = 30;

/// How often a weekday can come in a month.
const MAX_OCCURRENCE: u8 = 5;

/// One item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelativeDay {
    /// `L` (0) and `L-n`: the number of days before the last.
    BeforeLast(u8),
    /// `LW`: the last Monday to Friday.
    LastWorkday,
    /// `nW`: the Monday to Friday nearest to a day, inside the month.
    WorkdayNear(u8),
    /// `nL`: the last such weekday; 0 is Sunday.
    LastWeekday(u8),
    /// `n#k`: the k-th such weekday, counted from 1.
    NthWeekday(u8, u8),
}

/// A set of such days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RelativeDays {
    /// Bit n for n days before the last.
    before_last: u32,
    last_workday: bool,
    /// Bits 1-31.
    workdays_near: u32,
    /// Bits 0-6.
    last_weekdays: u8,
    /// Of each occurrence, bits 0-6.
    nth_weekdays: [u8; MAX_OCCURRENCE as usize],
}

/// Returns whether a text has the form of such an item, in any field, so that an error can name the field where it
/// belongs.
pub(super) fn is_relative_day(text: &str) -> bool {
    let begins_with_digit = text.starts_with(|first: char| first.is_ascii_digit());
    let last = |text: &str| strip_last_letter(text, 'L').is_some_and(is_weekday_name);
    text.eq_ignore_ascii_case("L")
        || text.eq_ignore_ascii_case("LW")
        || text.starts_with("L-")
        || text.starts_with("l-")
        || text.contains('#')
        || begins_with_digit && text.ends_with(['L', 'l', 'W', 'w'])
        || last(text)
}

impl RelativeDay {
    /// Parses `text` if it has a form that `field` supports.
    ///
    /// # Errors
    ///
    /// Its numbers are out of range.
    pub(super) fn parse(field: Field, text: &str) -> Result<Option<Self>, Reason> {
        match field {
            Field::DayOfMonth => Self::parse_day_of_month(text),
            Field::DayOfWeek => Self::parse_day_of_week(text),
            _ => Ok(None),
        }
    }

    fn parse_day_of_month(text: &str) -> Result<Option<Self>, Reason> {
        if text.eq_ignore_ascii_case("L") {
            return Ok(Some(Self::BeforeLast(0)));
        }
        if text.eq_ignore_ascii_case("LW") {
            return Ok(Some(Self::LastWorkday));
        }
        if let Some(days) = text.strip_prefix("L-").or_else(|| text.strip_prefix("l-")) {
            return number(days, 0, MAX_BEFORE_LAST).map(Self::BeforeLast).map(Some);
        }
        match strip_last_letter(text, 'W') {
            Some(day) if !day.is_empty() && day.bytes().all(|byte| byte.is_ascii_digit()) => {
                let (min, max) = Field::DayOfMonth.bounds();
                number(day, min, max).map(Self::WorkdayNear).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn parse_day_of_week(text: &str) -> Result<Option<Self>, Reason> {
        let weekday = |text| parse_value(Field::DayOfWeek, text).map(|day| day % 7);
        if let Some((day, occurrence)) = text.split_once('#') {
            let (day, occurrence) = (weekday(day)?, number(occurrence, 1, MAX_OCCURRENCE)?);
            return Ok(Some(Self::NthWeekday(day, occurrence)));
        }
        match strip_last_letter(text, 'L') {
            Some("") => Err(Reason::LastOfNone),
            Some(day) if is_weekday_name(day) || day.bytes().all(|byte| byte.is_ascii_digit()) => {
                weekday(day).map(Self::LastWeekday).map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl RelativeDays {
    pub(super) fn insert(&mut self, day: RelativeDay) {
        match day {
            RelativeDay::BeforeLast(days) => self.before_last |= 1 << days,
            RelativeDay::LastWorkday => self.last_workday = true,
            RelativeDay::WorkdayNear(day) => self.workdays_near |= 1 << day,
            RelativeDay::LastWeekday(day) => self.last_weekdays |= 1 << day,
            RelativeDay::NthWeekday(day, occurrence) => {
                self.nth_weekdays[usize::from(occurrence) - 1] |= 1 << day;
            }
        }
    }

    /// Returns the days that the day-of-month field selects in a month, bit n for day n.
    pub(super) fn by_month(&self, month: Month) -> u64 {
        let last = month.last_day();
        let mut days = 0;
        for before in members(self.before_last).take_while(|before| *before < last) {
            days |= 1 << (last - before);
        }
        for day in members(self.workdays_near).take_while(|day| *day <= last) {
            days |= 1 << month.workday_near(day);
        }
        if self.last_workday {
            days |= 1 << month.workday_near(last);
        }
        days
    }

    /// Returns the days that the day-of-week field selects in a month, bit n for day n.
    pub(super) fn by_week(&self, month: Month) -> u64 {
        let last = month.last_day();
        // The last seven days contain the last of each weekday, the k-th seven the k-th of each.
        let mut days = month.spread(self.last_weekdays) & seven_from(last - 6);
        for (before, weekdays) in (0_u32..).zip(self.nth_weekdays) {
            days |= month.spread(weekdays) & seven_from(7 * before + 1);
        }
        days
    }
}

/// Returns the mask of seven days.
fn seven_from(day: u32) -> u64 {
    0x7f << day
}

fn members(mut set: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(lowest)
    })
}

fn number(text: &str, min: u8, max: u8) -> Result<u8, Reason> {
    let number = u8::try_from(parse_number(text)?).ok();
    number.filter(|number| (min..=max).contains(number)).ok_or(Reason::OutOfRange { min, max })
}

/// Returns the text before its last character if that is the letter, in any case.
fn strip_last_letter(text: &str, letter: char) -> Option<&str> {
    text.strip_suffix([letter, letter.to_ascii_lowercase()])
}

fn is_weekday_name(text: &str) -> bool {
    WEEKDAYS.iter().any(|name| name.eq_ignore_ascii_case(text))
}
