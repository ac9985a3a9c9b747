//! Instants as people write them in requests.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};
use sexton_model::duration;
use sexton_model::zone::Zone;

use crate::text;

/// The accepted forms of a wall time.
const WALL_TIME_FORMATS: [&str; 4] =
    ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"];

/// Why a text is no instant. The message shows valid forms.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidInstant {
    /// It has none of the forms.
    #[error("{0:?} is no instant; write 2025-12-01T08:00:00Z, 2025-12-01 or, for so long ago, 36h")]
    Unreadable(String),
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

/// Parses `2025-12-01T08:00:00Z` (any offset), `2025-12-01` (midnight UTC) or `36h` (that long before `now`).
///
/// # Errors
///
/// [`InvalidInstant::Unreadable`].
pub fn parse(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, InvalidInstant> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(at.with_timezone(&Utc));
    }
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Ok(day.and_time(NaiveTime::MIN).and_utc());
    }
    duration::parse(text)
        .ok()
        .and_then(|ago| now.checked_sub_signed(TimeDelta::from_std(ago).ok()?))
        .ok_or_else(|| InvalidInstant::Unreadable(text.to_owned()))
}

/// Like [`parse`], but a date or a time without an offset is a wall time in `zone`.
///
/// # Errors
///
/// [`InvalidInstant`]; also for a time that the zone's clocks skip, or show twice.
pub fn parse_in_zone(
    text: &str,
    zone: Zone,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>, InvalidInstant> {
    let day = text.parse::<NaiveDate>().map(|day| day.and_time(NaiveTime::MIN));
    let wall = day.or_else(|error| {
        let read = WALL_TIME_FORMATS
            .iter()
            .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
        read.ok_or(error)
    });
    let Ok(wall) = wall else { return parse(text, now) };
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
    fn instants_are_read_in_three_forms() {
        let now: DateTime<Utc> = "2026-01-03T00:00:00Z".parse().unwrap();
        for (text, at) in [
            ("2025-12-01T08:00:00+01:00", "2025-12-01T07:00:00Z"),
            ("2025-12-01", "2025-12-01T00:00:00Z"),
            ("36h", "2026-01-01T12:00:00Z"),
        ] {
            assert_eq!(parse(text, now).unwrap(), at.parse::<DateTime<Utc>>().unwrap());
        }
        for text in ["", "yesterday", "2025-13-01", "-1h", "36"] {
            assert!(matches!(parse(text, now), Err(InvalidInstant::Unreadable(_))), "{text}");
        }
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
            let read = parse_in_zone(text, vienna, now).unwrap();
            assert_eq!(read, at.parse::<DateTime<Utc>>().unwrap(), "{text}");
        }
        for (text, says) in [
            ("2026-03-29T02:30", "pass over"),
            ("2026-10-25T02:30", "2026-10-25T00:30:00Z, 2026-10-25T01:30:00Z"),
            ("yesterday", "is no instant"),
        ] {
            let refused = parse_in_zone(text, vienna, now).unwrap_err().to_string();
            assert!(refused.contains(says), "{text}: {refused}");
        }
        let apia = Zone::parse("Pacific/Apia").unwrap();
        assert!(parse_in_zone("2011-12-30T12:00", apia, now).is_err(), "a day that there was not");
    }
}
