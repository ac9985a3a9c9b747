//! Time zones: which there are, and how far their clocks are from UTC.
//!
//! The names and the data are those of the IANA time zone database, as the `chrono-tz` crate holds
//! them: every program that is built from one lock file has the same, whatever its host has
//! installed. [`tz_data_version`] says which release that is.
//!
//! # Guarantees
//!
//! A [`Zone`] is one that the data knows; none of its questions fails or panics. Between two changes
//! of its clocks a zone's offset is constant, and never for less than [`MIN_OFFSET_SPAN_S`]: no
//! data had a shorter one when this was written, and a test asks all of it.
//!
//! # What it does not do
//!
//! It knows nothing of schedules; what a change of the clocks means for a job is decided in `cron`.

use std::fmt;

use chrono::{DateTime, FixedOffset, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::{IANA_TZDB_VERSION, TZ_VARIANTS, Tz};

use crate::quoting::quoted;
use crate::steps::step;
use crate::suggest::nearness;

/// No zone has a stretch of constant offset that is shorter, in seconds. The shortest known are a
/// week less an hour (Recife in 2000, Gaza in 2040).
pub const MIN_OFFSET_SPAN_S: i64 = 4 * 86_400;

/// No clock is farther from UTC than this, in seconds; the farthest known were 15 h 56 min behind
/// (Manila until 1844).
pub(crate) const FARTHEST_OFFSET_S: i64 = 16 * 3600;

/// No clock was ever set back by more than this, in seconds: a day, where a country changed to the
/// other side of the date line.
pub(crate) const LONGEST_REPETITION_S: i64 = 24 * 3600;

/// How far apart the offset is looked at, in seconds: what lies between two equal ones is equal too.
const PROBE_STEP_S: i64 = MIN_OFFSET_SPAN_S / 2;

/// The most names that a refusal suggests.
const MAX_SUGGESTED: usize = 3;

mod wall;

pub use wall::WallTimeMapping;

/// The release of the time zone database in this build, such as `2025b`.
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

    /// The zone of that name, in upper and lower case as IANA writes it: `Europe/Vienna`.
    ///
    /// # Errors
    ///
    /// [`ZoneError`], with similar names.
    pub fn parse(name: &str) -> Result<Self, ZoneError> {
        name.parse().map(Self).map_err(|_| ZoneError {
            // As much of it as is shown, and a character that tells that there was more.
            name: name.chars().take(crate::quoting::MAX_CHARS + 1).collect(),
            near: suggestions(name),
        })
    }

    /// Whether it is coordinated universal time, by whatever of its names.
    pub fn is_utc(self) -> bool {
        matches!(self.name().trim_start_matches("Etc/"), "UTC" | "UCT" | "Universal" | "Zulu")
    }

    /// The name, as it was given: a zone can have several.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Every zone there is, in the order of their names.
    pub fn all() -> impl Iterator<Item = Self> {
        TZ_VARIANTS.iter().copied().map(Self)
    }

    /// What the zone's clocks show at an instant.
    pub fn at(self, at: DateTime<Utc>) -> DateTime<FixedOffset> {
        at.with_timezone(&self.0.offset_from_utc_datetime(&at.naive_utc()).fix())
    }

    /// How far the zone's clocks are ahead of UTC at an instant, in seconds; both of Unix time.
    pub fn offset_s(self, at_s: i64) -> i64 {
        step();
        let utc = match DateTime::from_timestamp(at_s, 0) {
            Some(at) => at.naive_utc(),
            None if at_s < 0 => NaiveDateTime::MIN,
            None => NaiveDateTime::MAX,
        };
        i64::from(self.0.offset_from_utc_datetime(&utc).fix().local_minus_utc())
    }

    /// The first instant after `from_s`, up to and with `to_s`, from which on the clocks show
    /// something else than before. Costs a look at the data for every two days in between.
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

    /// The first instant without the offset, between one that has it and one that has not.
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

/// The names nearest to a wrong one, the whole of it or its city. `Etc/GMT+1` and its like are never
/// suggested: they lie on the other side of UTC than a person who writes `GMT+1` believes.
fn suggestions(name: &str) -> Vec<&'static str> {
    let mut near: Vec<(usize, &'static str)> = TZ_VARIANTS
        .iter()
        .map(|zone| zone.name())
        .filter(|known| !known.contains(['+', '0']) && !known.starts_with("Etc/GMT-"))
        .filter_map(|known| {
            let city = known.rsplit('/').next().unwrap_or(known);
            // A city without its continent is a whole step away from a name that fits entirely.
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
