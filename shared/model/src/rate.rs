//! Rates: a number of items per unit of time, and when each of them is due.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

/// Maximum number of items per unit of time.
pub const MAX_COUNT: u32 = 100_000;

/// A number of items in a second, a minute, an hour or a day, spread evenly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    count: u32,
    unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Second,
    Minute,
    Hour,
    Day,
}

/// A text that is no rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a rate as in 10/m: 1 to {MAX_COUNT}, then /s, /m, /h or /d")]
pub struct RateError;

impl Unit {
    const ALL: [(&'static str, Self); 4] =
        [("s", Self::Second), ("m", Self::Minute), ("h", Self::Hour), ("d", Self::Day)];

    const fn micros(self) -> i64 {
        1_000_000
            * match self {
                Self::Second => 1,
                Self::Minute => 60,
                Self::Hour => 3_600,
                Self::Day => 86_400,
            }
    }
}

impl Rate {
    /// Returns when the item with this index (from 0) is due, if the first is due at `start`. Each is computed from
    /// the start, so that no rounding errors add up; `None` where the calendar ends.
    pub fn due(self, start: DateTime<Utc>, index: u64) -> Option<DateTime<Utc>> {
        let index = i64::try_from(index).ok()?;
        let after = index.checked_mul(self.unit.micros())? / i64::from(self.count);
        start.checked_add_signed(TimeDelta::microseconds(after))
    }

    /// Returns how many items are due by `now`, if the first is due at `start`: the inverse of [`Self::due`].
    pub fn due_by(self, start: DateTime<Utc>, now: DateTime<Utc>) -> u64 {
        let Some(micros) = now.signed_duration_since(start).num_microseconds() else {
            return if now > start { u64::MAX } else { 0 };
        };
        let Ok(micros) = u64::try_from(micros) else { return 0 };
        // An item is due after its index times the unit, divided by the count and rounded down.
        let scaled = (u128::from(micros) + 1) * u128::from(self.count);
        u64::try_from(scaled.div_ceil(self.unit.micros() as u128)).unwrap_or(u64::MAX)
    }

    /// Returns how long the item with this index (from 0) waits after the first. No stretch of a unit's length has
    /// more items than allowed.
    pub fn wait(self, index: u64) -> Duration {
        self.duration_of(index.saturating_add(1))
    }

    /// Returns how long `count` items take, from the first to the last.
    pub fn duration_of(self, count: u64) -> Duration {
        let last = u128::from(count.saturating_sub(1));
        let micros = last * self.unit.micros() as u128 / u128::from(self.count);
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let (count, unit) = text.split_once('/').ok_or(RateError)?;
        let digits = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
        let count = count.parse().ok().filter(|count| digits && (1..=MAX_COUNT).contains(count));
        let unit = Unit::ALL.iter().find(|(letter, _)| *letter == unit);
        Ok(Self { count: count.ok_or(RateError)?, unit: unit.ok_or(RateError)?.1 })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter =
            Unit::ALL.iter().find(|(_, unit)| *unit == self.unit).map_or("", |entry| entry.0);
        write!(f, "{}/{letter}", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_and_written() {
        for text in ["1/s", "10/m", "7/h", "100000/d"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for text in ["", "10", "0/m", "+1/m", "1/w", "100001/s", "1.5/m", "10/", "/m", "10/m "] {
            assert_eq!(text.parse::<Rate>(), Err(RateError), "{text}");
        }
    }

    #[test]
    fn no_unit_of_time_begins_more_than_are_allowed() {
        for (text, unit) in [("10/m", 60), ("7/s", 1), ("3/h", 3_600), ("1000/m", 60)] {
            let rate: Rate = text.parse().unwrap();
            let waits: Vec<Duration> = (0..3_000).map(|index| rate.wait(index)).collect();
            for window in waits.windows(rate.count as usize + 1) {
                let (first, last) = (window[0], window[window.len() - 1]);
                assert!(first + Duration::from_secs(unit) <= last, "{text}");
            }
            assert_eq!(waits[0], Duration::ZERO);
        }
    }

    #[test]
    fn what_is_due_is_spread_evenly_and_nothing_is_lost_to_rounding() {
        let start = DateTime::UNIX_EPOCH;
        let rate: Rate = "7/m".parse().unwrap();
        let at = |index| (rate.due(start, index).unwrap() - start).num_microseconds().unwrap();
        assert_eq!((at(0), at(1), at(7), at(7_000)), (0, 8_571_428, 60_000_000, 60_000_000_000));
        assert_eq!(rate.duration_of(8), Duration::from_mins(1));
        assert_eq!(rate.duration_of(0), Duration::ZERO);
        assert_eq!(rate.due(start, u64::MAX), None);
    }

    #[test]
    fn how_many_are_due_is_the_inverse_of_when_each_is() {
        let start = DateTime::UNIX_EPOCH;
        for text in ["7/m", "3/s", "100000/s", "1/d", "999/h"] {
            let rate: Rate = text.parse().unwrap();
            for index in (0..50).chain([1_000, 123_457]) {
                let due = rate.due(start, index).unwrap();
                let just_before = due - TimeDelta::microseconds(1);
                assert_eq!(rate.due_by(start, due), index + 1, "{text} {index}");
                assert_eq!(rate.due_by(start, just_before), index, "{text} {index}");
            }
        }
    }
}
