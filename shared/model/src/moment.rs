//! An instant in people's notation: with an offset from UTC, or as a wall time in a job's zone.
//!
//! # Guarantees
//!
//! A [`Moment`] that is stored as it was written stays right when new time zone data moves its instant. It is always
//! a single instant ([`Moment::instant`]); at input, a wall time that is shown twice or never is refused
//! ([`Moment::resolve`]).

use std::fmt;

use chrono::{DateTime, Datelike, NaiveDateTime, SecondsFormat, Timelike, Utc};

use crate::quoting::quoted;
use crate::zone::{WallTimeMapping, Zone};

/// An instant or wall time in whole milliseconds, in the years 1970 to 9999.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Moment {
    /// The same instant everywhere.
    Instant(DateTime<Utc>),
    /// The instant at which the clocks of the job's zone show this.
    Wall(NaiveDateTime),
}

/// A text that is no moment: a fragment that fits after the field's name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct MomentError(String);

/// A wall time that has two instants or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", unclear(*wall, *zone, *shown))]
pub struct AmbiguousMoment {
    wall: NaiveDateTime,
    zone: Zone,
    shown: WallTimeMapping,
}

impl Moment {
    /// Parses RFC 3339, or the same without an offset: a wall time.
    ///
    /// # Errors
    ///
    /// [`MomentError`]: neither of these, no date of the calendar, a leap second, or finer than a millisecond.
    pub fn parse(text: &str) -> Result<Self, MomentError> {
        let wall = || {
            ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"]
                .iter()
                .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
        };
        let moment = DateTime::parse_from_rfc3339(text)
            .map(|at| Self::Instant(at.with_timezone(&Utc)))
            .ok()
            .or_else(|| wall().map(Self::Wall))
            .filter(|moment| (1970..=9999).contains(&moment.as_shown().year()))
            .ok_or_else(|| {
                let example = "write one such as \"2025-12-15T15:00:00\", which is a time of the \
                               job's zone, or \"2025-12-15T15:00:00Z\"";
                MomentError(format!("{} is not an instant; {example}", quoted(text)))
            })?;
        // A leap second has more than a thousand million nanoseconds.
        let nanosecond = moment.as_shown().nanosecond();
        if nanosecond >= 1_000_000_000 {
            let why = "is a leap second, which no clock here shows; write the second before";
            Err(MomentError(why.to_owned()))
        } else if nanosecond % 1_000_000 != 0 {
            Err(MomentError("is finer than a millisecond".to_owned()))
        } else {
            Ok(moment)
        }
    }

    /// Returns the instant in `zone`.
    ///
    /// # Errors
    ///
    /// [`AmbiguousMoment`] names the possible instants.
    pub fn resolve(self, zone: Zone) -> Result<DateTime<Utc>, AmbiguousMoment> {
        match self {
            Self::Instant(at) => Ok(at),
            Self::Wall(wall) => match zone.map_wall_time(wall) {
                WallTimeMapping::Once(at) => Ok(at),
                shown => Err(AmbiguousMoment { wall, zone, shown }),
            },
        }
    }

    /// Returns the instant in `zone`: of two the first, and of none the first after the clock change. A wall time
    /// that was unique when it was written may not be by newer data.
    pub fn instant(self, zone: Zone) -> DateTime<Utc> {
        match self {
            Self::Instant(at) => at,
            Self::Wall(wall) => zone.map_wall_time(wall).one(),
        }
    }

    /// Returns whether it is a wall time, so that the zone matters.
    pub const fn is_wall(self) -> bool {
        matches!(self, Self::Wall(_))
    }

    /// Returns the same in UTC, where a wall time is an instant.
    #[must_use]
    pub fn in_utc(self) -> Self {
        Self::Instant(self.instant(Zone::UTC))
    }

    const fn as_shown(self) -> NaiveDateTime {
        match self {
            Self::Instant(at) => at.naive_utc(),
            Self::Wall(wall) => wall,
        }
    }
}

impl From<DateTime<Utc>> for Moment {
    fn from(at: DateTime<Utc>) -> Self {
        Self::Instant(at)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instant(at) => f.write_str(&at.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
            Self::Wall(wall) => {
                let text = wall.and_utc().to_rfc3339_opts(SecondsFormat::AutoSi, true);
                f.write_str(text.trim_end_matches('Z'))
            }
        }
    }
}

fn unclear(wall: NaiveDateTime, zone: Zone, shown: WallTimeMapping) -> String {
    let wall = Moment::Wall(wall);
    match shown {
        WallTimeMapping::Once(at) => format!("{wall} is {}", zone.format_with_offset(at)),
        WallTimeMapping::Twice { first, second } => format!(
            "{wall} is there twice in {zone}, where the clocks are set back: write {} or {}",
            zone.format_with_offset(first),
            zone.format_with_offset(second)
        ),
        WallTimeMapping::Never { earlier, later, .. } => format!(
            "{wall} is not there in {zone}, where the clocks are set forward over it: write {} or {}",
            zone.format_with_offset(earlier),
            zone.format_with_offset(later)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vienna() -> Zone {
        Zone::parse("Europe/Vienna").unwrap()
    }

    #[test]
    fn a_moment_is_an_instant_or_a_wall_time_and_survives_being_written() {
        for (text, written, in_vienna) in [
            ("2025-12-15T15:00:00", "2025-12-15T15:00:00", "2025-12-15T14:00:00Z"),
            ("2025-07-15 15:00:00", "2025-07-15T15:00:00", "2025-07-15T13:00:00Z"),
            ("2025-12-15T15:00", "2025-12-15T15:00:00", "2025-12-15T14:00:00Z"),
            ("2025-12-15T15:00:00Z", "2025-12-15T15:00:00Z", "2025-12-15T15:00:00Z"),
            (
                "2025-12-15T15:00:00.250+01:00",
                "2025-12-15T14:00:00.250Z",
                "2025-12-15T14:00:00.250Z",
            ),
        ] {
            let moment = Moment::parse(text).unwrap();
            assert_eq!(moment.to_string(), written);
            assert_eq!(Moment::parse(written), Ok(moment));
            assert_eq!(moment.resolve(vienna()), Ok(in_vienna.parse().unwrap()), "{text}");
        }
        let in_utc = Moment::parse("2025-12-15T15:00:00").unwrap().in_utc();
        assert_eq!(in_utc.to_string(), "2025-12-15T15:00:00Z");
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "tomorrow",
            "2025-12-15",
            "15:00:00",
            "2025-02-30T00:00:00",
            "2025-12-15T25:00:00",
            "12025-12-15T15:00:00",
            "1969-12-15T15:00:00",
            "2025-12-15T15:00:00 Europe/Vienna",
            "2016-12-31T23:59:60Z",
            "2025-12-15T15:00:00.0001Z",
        ] {
            assert!(Moment::parse(text).is_err(), "{text} was accepted");
        }
    }

    #[test]
    fn an_unclear_wall_time_names_both_instants_and_how_to_choose() {
        for (text, expected) in [
            (
                "2026-10-25T02:30:00",
                "2026-10-25T02:30:00 is there twice in Europe/Vienna, where the clocks are set \
                 back: write 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00",
            ),
            (
                "2026-03-29T02:30:00",
                "2026-03-29T02:30:00 is not there in Europe/Vienna, where the clocks are set \
                 forward over it: write 2026-03-29T01:30:00+01:00 or 2026-03-29T03:30:00+02:00",
            ),
        ] {
            let moment = Moment::parse(text).unwrap();
            assert_eq!(moment.resolve(vienna()).unwrap_err().to_string(), expected);
            // Every suggestion is valid input.
            for word in expected.split(' ').filter(|word| word.contains('+')) {
                Moment::parse(word).unwrap().resolve(vienna()).unwrap();
            }
        }
        let at = |text: &str| Moment::parse(text).unwrap().instant(vienna()).to_rfc3339();
        assert_eq!(at("2026-10-25T02:30:00"), "2026-10-25T00:30:00+00:00");
        assert_eq!(at("2026-03-29T02:30:00"), "2026-03-29T01:00:00+00:00");
    }
}
