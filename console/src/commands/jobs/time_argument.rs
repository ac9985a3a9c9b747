//! Instants in a zone, as people give them to commands about one job.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};
use sexton_model::zone::Zone;

use crate::commands::instant;
use crate::failure::Failure;
use crate::show;

/// How a wall time may be written.
const WALL_TIME_FORMATS: [&str; 4] =
    ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"];

/// Reads what [`instant::parse`] does, but a date or a time without an offset is what the clocks of `zone`
/// show.
///
/// # Errors
///
/// [`Failure::Usage`] that says what can be written; also for a time that those clocks pass over, or show
/// twice.
pub(super) fn parse(
    option: &str,
    text: &str,
    zone: Zone,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>, Failure> {
    let day = text.parse::<NaiveDate>().map(|day| day.and_time(NaiveTime::MIN));
    let wall = day.or_else(|error| {
        let read = WALL_TIME_FORMATS
            .iter()
            .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
        read.ok_or(error)
    });
    let Ok(wall) = wall else { return instant::parse(option, text, now) };
    match instants(zone, wall).as_slice() {
        [one] => Ok(*one),
        [] => Err(Failure::Usage(format!(
            "{option} {text:?}: the clocks of {zone} pass over that time; write it in UTC, as in \
             2025-12-01T08:00:00Z"
        ))),
        several => {
            let all: Vec<String> = several.iter().map(|at| show::instant(*at)).collect();
            Err(Failure::Usage(format!(
                "{option} {text:?}: the clocks of {zone} show that time more than once; write one of {}",
                all.join(", ")
            )))
        }
    }
}

/// The instants at which the clocks of a zone show a time. They change at most once within the two days
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
            let read = parse("--at", text, vienna, now).unwrap();
            assert_eq!(read, at.parse::<DateTime<Utc>>().unwrap(), "{text}");
        }
        for (text, says) in [
            ("2026-03-29T02:30", "pass over"),
            ("2026-10-25T02:30", "2026-10-25T00:30:00Z, 2026-10-25T01:30:00Z"),
            ("yesterday", "is no instant"),
        ] {
            let refused = parse("--at", text, vienna, now).unwrap_err().to_string();
            assert!(refused.contains(says), "{text}: {refused}");
        }
        let apia = Zone::parse("Pacific/Apia").unwrap();
        assert!(parse("--at", "2011-12-30T12:00", apia, now).is_err(), "a day that there was not");
    }
}
