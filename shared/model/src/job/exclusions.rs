//! Days on which a job does not fire: holidays, a shutdown between the years.

use std::fmt;

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Utc};

use crate::quoting::quoted;
use crate::zone::Zone;

/// Maximum number of entries of a list.
pub const MAX_EXCLUSIONS: usize = 500;

/// Days of a job's zone, as ascending ranges that do not touch, so that two lists of the same days are equal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Exclusions(Vec<DateRange>);

/// A range of days, both included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DateRange {
    first: NaiveDate,
    last: NaiveDate,
}

/// A text that is no date or range: a fragment that fits after the field's name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct DateRangeError(String);

impl DateRange {
    /// Parses `2026-12-25` or `2026-12-24..2026-12-26`.
    ///
    /// # Errors
    ///
    /// [`DateRangeError`]: neither of these, no dates of the calendar, or a range that runs backwards.
    pub fn parse(text: &str) -> Result<Self, DateRangeError> {
        let day = |part: &str| {
            Some(part)
                .filter(|part| part.len() == 10 && part.starts_with(|c: char| c.is_ascii_digit()))
                .and_then(|part| NaiveDate::parse_from_str(part, "%Y-%m-%d").ok())
                .filter(|day| (1970..=9999).contains(&day.year()))
                .ok_or_else(|| {
                    let example = "write one as \"2026-12-25\", or \"2026-12-24..2026-12-26\"";
                    DateRangeError(format!("{} is not a date; {example}", quoted(part)))
                })
        };
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let days = Self { first: day(first)?, last: day(last)? };
        if days.first > days.last {
            let order = "runs backwards; write the earlier date first";
            return Err(DateRangeError(format!("{} {order}", quoted(text))));
        }
        Ok(days)
    }
}

impl fmt::Display for DateRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { first, last } if first == last => write!(f, "{first}"),
            Self { first, last } => write!(f, "{first}..{last}"),
        }
    }
}

impl FromIterator<DateRange> for Exclusions {
    fn from_iter<I: IntoIterator<Item = DateRange>>(days: I) -> Self {
        let mut all: Vec<DateRange> = days.into_iter().collect();
        all.sort_unstable();
        let mut merged: Vec<DateRange> = Vec::with_capacity(all.len());
        for days in all {
            match merged.last_mut() {
                Some(last) if last.last.succ_opt().is_none_or(|next| days.first <= next) => {
                    last.last = last.last.max(days.last);
                }
                _ => merged.push(days),
            }
        }
        Self(merged)
    }
}

impl Exclusions {
    /// Returns whether the list is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the ranges as they are written, in their order.
    pub fn to_texts(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    /// The inverse of [`Self::to_texts`].
    ///
    /// # Errors
    ///
    /// [`DateRangeError`] for the first invalid one.
    pub fn from_texts<T: AsRef<str>>(texts: &[T]) -> Result<Self, DateRangeError> {
        texts.iter().map(|text| DateRange::parse(text.as_ref())).collect()
    }

    /// Returns whether `at` lies on one of the days.
    pub fn hold(&self, at: DateTime<Utc>, zone: Zone) -> bool {
        self.end_of(at, zone).is_some()
    }

    /// If `at` lies on one of the days, returns the first instant after it at which the zone's clocks can show a day
    /// outside the range. Strictly after `at`, and no later than the days to the end of the range and a clock change
    /// allow.
    pub(crate) fn end_of(&self, at: DateTime<Utc>, zone: Zone) -> Option<DateTime<Utc>> {
        // Most jobs exclude nothing, and need no read of the zone's data.
        if self.0.is_empty() {
            return None;
        }
        let day = zone.at(at).date_naive();
        let index = self.0.partition_point(|days| days.last < day);
        let days = self.0.get(index).filter(|days| days.first <= day)?;
        let end = days.last.succ_opt().map(|next| next.and_time(NaiveTime::MIN));
        Some(end.and_then(|end| zone.next_wall_time(end, at)).unwrap_or(DateTime::<Utc>::MAX_UTC))
    }

    /// Returns the first range that ends at or after `at`, as instants of the zone: from its midnight to its end.
    pub(crate) fn next_from(
        &self,
        at: DateTime<Utc>,
        zone: Zone,
    ) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        if self.0.is_empty() {
            return None;
        }
        if let Some(end) = self.end_of(at, zone) {
            return Some((at, end));
        }
        let day = zone.at(at).date_naive();
        let days = self.0.get(self.0.partition_point(|days| days.last < day))?;
        let first = zone.next_wall_time(days.first.and_time(NaiveTime::MIN), at)?;
        Some((first, self.end_of(first, zone)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(texts: &[&str]) -> Exclusions {
        Exclusions::from_texts(texts).unwrap()
    }

    fn zone(name: &str) -> Zone {
        Zone::parse(name).unwrap()
    }

    #[test]
    fn lists_that_mean_the_same_days_are_equal() {
        let days = list(&["2026-12-31", "2026-12-24..2026-12-26", "2026-12-25", "2026-12-27"]);
        assert_eq!(days.to_texts(), ["2026-12-24..2026-12-27", "2026-12-31"]);
        assert_eq!(Exclusions::from_texts(&days.to_texts()), Ok(days));
        assert_eq!(list(&["9999-12-31", "9999-12-31"]).to_texts(), ["9999-12-31"]);
    }

    #[test]
    fn what_is_no_day_is_refused_in_words_that_say_what_to_write() {
        for (text, expected) in [
            ("2026-02-30", "\"2026-02-30\" is not a date; write one as \"2026-12-25\""),
            ("2026-12-24..2026-13-26", "\"2026-13-26\" is not a date"),
            ("2026-12-26..2026-12-24", "\"2026-12-26..2026-12-24\" runs backwards"),
            ("2026-12-24..", "\"\" is not a date"),
            ("Christmas", "\"Christmas\" is not a date"),
            ("26-1-1", "\"26-1-1\" is not a date"),
            ("1969-12-31", "\"1969-12-31\" is not a date"),
            ("+2026-12-5", "\"+2026-12-5\" is not a date"),
        ] {
            let error = DateRange::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_day_is_one_of_the_zone() {
        let days = list(&["2026-12-25"]);
        for (at, name, held) in [
            ("2026-12-24T22:59:59Z", "Europe/Vienna", false),
            ("2026-12-24T23:00:00Z", "Europe/Vienna", true),
            ("2026-12-25T22:59:59Z", "Europe/Vienna", true),
            ("2026-12-25T23:00:00Z", "Europe/Vienna", false),
            ("2026-12-25T23:00:00Z", "UTC", true),
        ] {
            assert_eq!(days.hold(at.parse().unwrap(), zone(name)), held, "{at} in {name}");
        }
    }

    proptest! {
        #[test]
        fn the_end_of_an_excluded_stretch_is_where_the_clocks_show_another_day(
            (name, around) in prop::sample::select(vec![
                ("Europe/Vienna", "2026-10-25"),
                ("America/Sao_Paulo", "2018-11-04"), // no midnight
                ("America/Havana", "2026-11-01"),    // midnight twice
                ("Pacific/Apia", "2011-12-29"),      // the day after is missing
                ("Africa/Casablanca", "2026-02-15"),
            ]),
            hours in -60_i64..60,
            length in 0_u64..4,
        ) {
            let zone = zone(name);
            let first: NaiveDate = around.parse().unwrap();
            let last = first + chrono::Days::new(length);
            let days: Exclusions = [DateRange { first, last }].into_iter().collect();
            let at = first.and_time(NaiveTime::MIN).and_utc() + chrono::TimeDelta::hours(hours);
            let on = |at: DateTime<Utc>| (first..=last).contains(&zone.at(at).date_naive());
            let end = days.end_of(at, zone);
            prop_assert_eq!(end.is_some(), on(at));
            if let Some(end) = end {
                prop_assert!(end > at && !on(end));
                let halves = (end - at).num_seconds() / 1_800;
                let every = (0..=halves).map(|half| at + chrono::TimeDelta::minutes(30 * half));
                // Clocks that are set back at midnight show the day again, which then ends a second time.
                prop_assert!(every.take_while(|at| *at < end).all(on));
            }
            match days.next_from(at, zone) {
                Some((begin, end)) => {
                    prop_assert!(at <= begin && begin < end && on(begin) && !on(end));
                    prop_assert!(begin == at || !on(begin - chrono::TimeDelta::seconds(1)));
                }
                None => prop_assert!(zone.at(at).date_naive() > last),
            }
        }
    }
}
