//! Instants as people write them in requests.

use std::ops::RangeInclusive;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};
use sexton_model::duration;
use sexton_model::zone::Zone;

use crate::error::InvalidRequest;
use crate::text;

/// The accepted forms of a wall time.
const WALL_TIME_FORMATS: [&str; 4] =
    ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"];

/// The accepted forms of an instant, for help texts and errors.
pub const FORMS: &str =
    "2025-12-01T08:00:00Z, 2025-12-01T08:00, 2025-12-01, now, or a duration before now such as 36h";

/// The years of the instants that a request may name: RFC 3339 has four digits for a year.
const YEARS: RangeInclusive<i32> = 0..=9_999;
/// The years of the instants from which a request may look ahead: what it finds may lie centuries behind them.
pub const START_YEARS: RangeInclusive<i32> = 0..=9_000;
/// The last year of which firings are listed: at the end of the next one the clocks of a zone may show a fifth digit.
const LAST_LISTED_YEAR: i32 = 9_998;

/// Returns whether RFC 3339 can write the instant by the clocks of any zone. Lists of firings end before one of which it cannot.
pub fn is_listed(at: DateTime<Utc>) -> bool {
    at.year() <= LAST_LISTED_YEAR
}

/// Why a text is no instant. The message shows valid forms.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidInstant {
    /// It has none of the forms.
    #[error("{0:?} is no instant; write one as in {FORMS}")]
    Unreadable(String),
    /// Its year is too early or too late.
    #[error("{text:?} lies outside the years {first} to {last} in UTC", first = years.start(), last = years.end())]
    Far {
        /// The given text.
        text: String,
        /// The years in which it may lie.
        years: RangeInclusive<i32>,
    },
    /// The clocks of the zone skip it.
    #[error(
        "{text:?}: the clocks of {zone} pass over that time; write it in UTC, as in 2025-12-01T08:00:00Z"
    )]
    Skipped {
        /// The given text.
        text: String,
        /// The zone.
        zone: Zone,
    },
    /// The clocks of the zone show it more than once.
    #[error(
        "{text:?}: the clocks of {zone} show that time more than once; write one of {}",
        instants.iter().map(|at| text::instant(*at)).collect::<Vec<_>>().join(", ")
    )]
    Repeated {
        /// The given text.
        text: String,
        /// The zone.
        zone: Zone,
        /// The instants at which they show it.
        instants: Vec<DateTime<Utc>>,
    },
}

/// Parses an instant: `2025-12-01T08:00:00Z` (any offset), a wall time (`2025-12-01T08:00`) or a day (`2025-12-01`, its
/// midnight) by the clocks of `zone`, `now`, or a duration before `now` (`36h`).
///
/// # Errors
///
/// [`InvalidInstant`]; also for a time that the zone's clocks skip, or show twice, and for a year of more than four digits.
pub fn parse(text: &str, zone: Zone, now: DateTime<Utc>) -> Result<DateTime<Utc>, InvalidInstant> {
    parse_within(&YEARS, text, zone, now)
}

/// As [`parse`], for an instant from which a request looks ahead.
///
/// # Errors
///
/// As of [`parse`], and for a year outside of [`START_YEARS`].
pub fn parse_start(
    text: &str,
    zone: Zone,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>, InvalidInstant> {
    parse_within(&START_YEARS, text, zone, now)
}

fn parse_within(
    years: &RangeInclusive<i32>,
    text: &str,
    zone: Zone,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>, InvalidInstant> {
    let at = parse_of_any_year(text, zone, now)?;
    if years.contains(&at.year()) {
        return Ok(at);
    }
    Err(InvalidInstant::Far { text: text.to_owned(), years: years.clone() })
}

fn parse_of_any_year(
    text: &str,
    zone: Zone,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>, InvalidInstant> {
    if text == "now" {
        return Ok(now);
    }
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(at.with_timezone(&Utc));
    }
    if let Some(wall) = wall_time(text) {
        return at_wall_time(text, wall, zone);
    }
    duration::parse(text)
        .ok()
        .and_then(|ago| now.checked_sub_signed(TimeDelta::from_std(ago).ok()?))
        .ok_or_else(|| InvalidInstant::Unreadable(text.to_owned()))
}

/// The instants from `since`, included, to `until`, excluded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeRange {
    /// The first instant; `None`: no limit.
    pub since: Option<DateTime<Utc>>,
    /// The instant behind the last one; `None`: no limit.
    pub until: Option<DateTime<Utc>>,
}

/// A [`TimeRange`] in texts, as [`parse`] reads them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeRangeRequest<'a> {
    /// At or after this.
    pub since: Option<&'a str>,
    /// Before this.
    pub until: Option<&'a str>,
}

impl TimeRangeRequest<'_> {
    /// Parses the request.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`] of the fields `since` and `until`, and for a range that contains no instant.
    pub fn read(self, zone: Zone, now: DateTime<Utc>) -> Result<TimeRange, InvalidRequest> {
        let read = |field, text: Option<&str>| {
            text.map(|text| parse(text, zone, now))
                .transpose()
                .map_err(|error| InvalidRequest::field(field, error.to_string()))
        };
        let range =
            TimeRange { since: read("since", self.since)?, until: read("until", self.until)? };
        match (range.since, range.until) {
            (Some(since), Some(until)) if since >= until => Err(InvalidRequest::EmptyRange),
            _ => Ok(range),
        }
    }
}

impl TimeRangeRequest<'_> {
    /// Parses a request for the past: without an end it ends now, and without a beginning it is empty.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub(crate) fn read_until_now(
        self,
        zone: Zone,
        now: DateTime<Utc>,
    ) -> Result<(DateTime<Utc>, DateTime<Utc>), InvalidRequest> {
        let range = self.read(zone, now)?;
        let (since, until) = (range.since.unwrap_or(now), range.until.unwrap_or(now));
        if since < until { Ok((since, until)) } else { Err(InvalidRequest::EmptyRange) }
    }
}

/// Returns the last instant before this one, in the database's precision.
pub(crate) fn last_before(at: DateTime<Utc>) -> DateTime<Utc> {
    at - TimeDelta::microseconds(1)
}

fn wall_time(text: &str) -> Option<NaiveDateTime> {
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Some(day.and_time(NaiveTime::MIN));
    }
    WALL_TIME_FORMATS.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
}

fn at_wall_time(
    text: &str,
    wall: NaiveDateTime,
    zone: Zone,
) -> Result<DateTime<Utc>, InvalidInstant> {
    let instants = instants(zone, wall);
    let text = text.to_owned();
    match instants.as_slice() {
        [one] => Ok(*one),
        [] => Err(InvalidInstant::Skipped { text, zone }),
        _ => Err(InvalidInstant::Repeated { text, zone, instants }),
    }
}

/// Returns the instants at which the clocks of a zone show a time. They change at most once within the two days
/// around it, so the offset is the one before or the one after.
fn instants(zone: Zone, wall: NaiveDateTime) -> Vec<DateTime<Utc>> {
    let around = [-86_400, 86_400].map(|s| zone.offset_s(wall.and_utc().timestamp() + s));
    let mut found: Vec<DateTime<Utc>> = around
        .into_iter()
        .filter_map(|offset| wall.and_utc().checked_sub_signed(TimeDelta::seconds(offset)))
        .filter(|at| zone.at(*at).naive_local() == wall)
        .collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_in_each_form() {
        let now: DateTime<Utc> = "2026-01-03T00:00:00Z".parse().unwrap();
        for (text, at) in [
            ("2025-12-01T08:00:00+01:00", "2025-12-01T07:00:00Z"),
            ("2025-12-01T08:00", "2025-12-01T08:00:00Z"),
            ("2025-12-01", "2025-12-01T00:00:00Z"),
            ("36h", "2026-01-01T12:00:00Z"),
            ("now", "2026-01-03T00:00:00Z"),
        ] {
            assert_eq!(parse(text, Zone::UTC, now).unwrap(), at.parse::<DateTime<Utc>>().unwrap());
        }
        for text in ["", "yesterday", "2025-13-01", "-1h", "36", "Now", "9999999h"] {
            let refused = parse(text, Zone::UTC, now).unwrap_err();
            assert!(matches!(refused, InvalidInstant::Unreadable(_)), "{text}");
        }
        let refuses = |parsed: Result<_, InvalidInstant>| {
            parsed.is_err_and(|error| matches!(error, InvalidInstant::Far { .. }))
        };
        for text in ["9999-12-31T23:59:59-01:00", "+12345-06-07", "-5000-01-01"] {
            assert!(refuses(parse(text, Zone::UTC, now)), "{text}");
        }
        assert!(parse("9999-12-31T23:59:59Z", Zone::UTC, now).is_ok());
        assert!(refuses(parse_start("9000-12-31T23:59:59-01:00", Zone::UTC, now)));
        assert!(parse_start("9000-12-31T23:59:59Z", Zone::UTC, now).is_ok());
    }

    #[test]
    fn a_range_includes_its_beginning_and_excludes_its_end() {
        let now: DateTime<Utc> = "2026-01-03T00:00:00Z".parse().unwrap();
        let read = |since, until| {
            TimeRangeRequest { since: Some(since), until: Some(until) }.read(Zone::UTC, now)
        };
        assert!(read("2h", "1h").is_ok());
        for (since, until) in [("1h", "1h"), ("1h", "2h")] {
            assert!(
                matches!(read(since, until), Err(InvalidRequest::EmptyRange)),
                "{since} {until}"
            );
        }
        let refused = read("1h", "soon").unwrap_err().to_string();
        assert!(refused.contains("until") && refused.contains(FORMS), "{refused}");
    }

    #[test]
    fn a_time_without_an_offset_is_what_the_clocks_of_the_zone_show() {
        let now: DateTime<Utc> = "2026-01-03T00:00:00Z".parse().unwrap();
        let vienna = Zone::parse("Europe/Vienna").unwrap();
        for (text, at) in [
            ("2026-01-01T08:00:00+05:00", "2026-01-01T03:00:00Z"),
            ("2026-01-01T08:00", "2026-01-01T07:00:00Z"),
            ("2026-07-01 08:00:30", "2026-07-01T06:00:30Z"),
            ("2026-07-01", "2026-06-30T22:00:00Z"),
            ("36h", "2026-01-01T12:00:00Z"),
        ] {
            let read = parse(text, vienna, now).unwrap();
            assert_eq!(read, at.parse::<DateTime<Utc>>().unwrap(), "{text}");
        }
        for (text, says) in [
            ("2026-03-29T02:30", "pass over"),
            ("2026-10-25T02:30", "2026-10-25T00:30:00Z, 2026-10-25T01:30:00Z"),
            ("yesterday", "is no instant"),
        ] {
            let refused = parse(text, vienna, now).unwrap_err().to_string();
            assert!(refused.contains(says), "{text}: {refused}");
        }
        let apia = Zone::parse("Pacific/Apia").unwrap();
        assert!(parse("2011-12-30T12:00", apia, now).is_err(), "a day that there was not");
    }
}
