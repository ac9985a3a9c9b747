//! Time zones, and the offsets of their clocks from UTC.
//!
//! The names and the data are those of the IANA time zone database, as the `chrono-tz` crate contains them: every
//! program that is built from one lock file has the same, whatever its host has installed. [`tz_data_version`]
//! returns its release.
//!
//! # Guarantees
//!
//! A [`Zone`] exists in the data; none of its methods fails or panics. Between two clock changes a zone's offset is
//! constant, and never for less than [`MIN_OFFSET_SPAN_S`]: no known data has a shorter span, and a test checks all
//! of it.
//!
//! # What it does not do
//!
//! It knows nothing of schedules; `cron` decides the effect of a clock change on a job.

use std::fmt;

use chrono::{DateTime, FixedOffset, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::{IANA_TZDB_VERSION, TZ_VARIANTS, Tz};

use crate::quoting::quoted;
use crate::steps::step;
use crate::suggest::nearness;

/// The shortest span of constant offset in any zone, in seconds. The shortest known ones are a week less an hour
/// (Recife in 2000, Gaza in 2040).
pub const MIN_OFFSET_SPAN_S: i64 = 4 * 86_400;

/// The largest offset from UTC of any clock, in seconds; the largest known one was 15 h 56 min behind (Manila until
/// 1844).
pub(crate) const FARTHEST_OFFSET_S: i64 = 16 * 3600;

/// The largest step back of any clock, in seconds: a day, where a country moved to the other side of the date line.
pub(crate) const LONGEST_REPETITION_S: i64 = 24 * 3600;

/// Distance between two reads of the offset, in seconds: between two equal ones it does not change.
const PROBE_STEP_S: i64 = MIN_OFFSET_SPAN_S / 2;

/// Maximum number of names that a refusal suggests.
const MAX_SUGGESTED: usize = 3;

mod wall;

pub use wall::WallTimeMapping;

/// Returns the release of the time zone database in this build, such as `2025b`.
pub const fn tz_data_version() -> &'static str {
    IANA_TZDB_VERSION
}

/// A time zone of the IANA database.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Zone(Tz);

/// A name that no zone has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a time zone; {}", quoted(.name), format_suggestions(.near))]
pub struct ZoneError {
    name: String,
    near: Vec<&'static str>,
}

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(Tz::UTC);

    /// Returns the zone of that name, in IANA's case: `Europe/Vienna`.
    ///
    /// # Errors
    ///
    /// [`ZoneError`], with similar names.
    pub fn parse(name: &str) -> Result<Self, ZoneError> {
        name.parse().map(Self).map_err(|_| ZoneError {
            // The part that is shown, and one character that shows that there was more.
            name: name.chars().take(crate::quoting::MAX_CHARS + 1).collect(),
            near: suggestions(name),
        })
    }

    /// Returns whether it is coordinated universal time, by any of its names.
    pub fn is_utc(self) -> bool {
        matches!(self.name().trim_start_matches("Etc/"), "UTC" | "UCT" | "Universal" | "Zulu")
    }

    /// Returns the given name; a zone can have several.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Yields every zone, in the order of the names.
    pub fn all() -> impl Iterator<Item = Self> {
        TZ_VARIANTS.iter().copied().map(Self)
    }

    /// Returns the wall time of the zone's clocks at an instant.
    pub fn at(self, at: DateTime<Utc>) -> DateTime<FixedOffset> {
        at.with_timezone(&self.0.offset_from_utc_datetime(&at.naive_utc()).fix())
    }

    /// Returns how far the zone's clocks are ahead of UTC at an instant of Unix time, both in seconds.
    pub fn offset_s(self, at_s: i64) -> i64 {
        step();
        let utc = match DateTime::from_timestamp(at_s, 0) {
            Some(at) => at.naive_utc(),
            None if at_s < 0 => NaiveDateTime::MIN,
            None => NaiveDateTime::MAX,
        };
        i64::from(self.0.offset_from_utc_datetime(&utc).fix().local_minus_utc())
    }

    /// Returns the first instant after `from_s`, up to and including `to_s`, at which the offset changes. Costs a
    /// read of the data for every two days in between.
    pub fn first_change_s(self, from_s: i64, to_s: i64) -> Option<i64> {
        let offset_s = self.offset_s(from_s);
        let mut same_s = from_s;
        while same_s < to_s {
            let other_s = same_s.saturating_add(PROBE_STEP_S).min(to_s);
            if self.offset_s(other_s) != offset_s {
                return Some(self.bisect(offset_s, same_s, other_s));
            }
            same_s = other_s;
        }
        None
    }

    /// Returns the first instant without the offset, between one that has it and one that has not.
    fn bisect(self, offset_s: i64, mut same_s: i64, mut other_s: i64) -> i64 {
        while other_s - same_s > 1 {
            let middle_s = same_s + (other_s - same_s) / 2;
            if self.offset_s(middle_s) == offset_s {
                same_s = middle_s;
            } else {
                other_s = middle_s;
            }
        }
        other_s
    }
}

impl Default for Zone {
    fn default() -> Self {
        Self::UTC
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the names nearest to a wrong one, comparing the whole or its city. Never suggests `Etc/GMT+1` and its
/// like: they lie on the other side of UTC than a person who writes `GMT+1` believes.
fn suggestions(name: &str) -> Vec<&'static str> {
    let mut near: Vec<(usize, &'static str)> = TZ_VARIANTS
        .iter()
        .map(|zone| zone.name())
        .filter(|known| !known.contains(['+', '0']) && !known.starts_with("Etc/GMT-"))
        .filter_map(|known| {
            let city = known.rsplit('/').next().unwrap_or(known);
            // A match of the city alone counts one step less than a match of the whole name.
            let by_city = nearness(name, city).map(|distance| distance + 1);
            Some((nearness(name, known).into_iter().chain(by_city).min()?, known))
        })
        .collect();
    near.sort_unstable();
    let best = near.first().map_or(0, |(distance, _)| *distance);
    near.into_iter()
        .take_while(|(distance, _)| *distance <= best + 1)
        .map(|(_, known)| known)
        .take(MAX_SUGGESTED)
        .collect()
}

fn format_suggestions(near: &[&str]) -> String {
    match near {
        [] => "write a name of the IANA database such as Europe/Vienna, or UTC".to_owned(),
        [one] => format!("did you mean {one}?"),
        [more @ .., last] => format!("did you mean {} or {last}?", more.join(", ")),
    }
}

#[cfg(test)]
mod tests;
