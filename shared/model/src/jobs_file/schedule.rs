//! When a job fires: `schedule`, `every`, `at` or none of them, and the zone.

use chrono::{DateTime, Datelike, NaiveDateTime, Timelike, Utc};
use toml::Spanned;
use toml::de::DeValue;

use super::fields::{Fields, kind};
use crate::cron::{Dialect, Dst, Expression};
use crate::echo::quoted;
use crate::job::{MAX_PERIOD, MIN_PERIOD, Schedule};
use crate::zone::Zone;

/// The fields of which a job has at most one.
const KINDS: [&str; 3] = ["schedule", "every", "at"];

/// Reads the schedule of the job called `name`; [`Schedule::None`] if the job has no such field. `None` if it was reported.
pub(super) fn read(fields: &mut Fields<'_, '_, '_>, name: &str) -> Option<Schedule> {
    let given: Vec<_> = KINDS.into_iter().filter(|kind| fields.has(kind)).collect();
    if let [_, second, ..] = given[..] {
        let given = given.join(" and ");
        fields.problem(second, format!("the job has {given}; write only one of them"));
    }
    // All are read, so that all problems are found.
    let cron = cron(fields, name);
    let every =
        fields.duration("every", MIN_PERIOD..=MAX_PERIOD).map(|period| Schedule::Every { period });
    let at = at(fields);
    match given[..] {
        [] => Some(Schedule::None),
        _ => cron.or(every).or(at),
    }
}

/// Reads the zone. It says nothing of a schedule without wall times, and so is refused there.
pub(super) fn timezone(fields: &mut Fields<'_, '_, '_>) -> Option<Zone> {
    const FIELD: &str = "timezone";
    let name = fields.text(FIELD, usize::MAX)?;
    match Zone::parse(name) {
        Ok(zone) => {
            if !zone.is_utc() && !fields.has("schedule") {
                let message = "has a meaning only with schedule: periods count in UTC, and an \
                               instant says its own offset";
                fields.problem(FIELD, message);
            }
            // One name for one meaning: no change where only the name is another.
            Some(if zone.is_utc() { Zone::UTC } else { zone })
        }
        Err(error) => {
            fields.problem(FIELD, error.to_string());
            None
        }
    }
}

/// Reads what a change of the clocks means.
pub(super) fn dst(fields: &mut Fields<'_, '_, '_>) -> Option<Dst> {
    let dst = fields.choice("dst", Dst::parse, &Dst::WORDS, &[])?;
    if !fields.has("schedule") {
        fields.problem("dst", "has a meaning only with schedule");
    }
    Some(dst)
}

fn cron(fields: &mut Fields<'_, '_, '_>, name: &str) -> Option<Schedule> {
    // The parser has a length limit of its own.
    let text = fields.text("schedule", usize::MAX)?;
    match Expression::parse(text, Dialect::Any, name) {
        Ok(_) => Some(Schedule::Cron { expression: text.to_owned() }),
        Err(error) => {
            fields.problem("schedule", error.to_string());
            None
        }
    }
}

fn at(fields: &mut Fields<'_, '_, '_>) -> Option<Schedule> {
    let parsed = match fields.raw("at").map(Spanned::get_ref)? {
        DeValue::String(text) => instant(text),
        DeValue::Datetime(datetime) => instant(&datetime.to_string()),
        other => Err(format!("must be an instant, not {}", kind(other))),
    };
    match parsed {
        Ok(at) => Some(Schedule::At { at }),
        Err(message) => {
            fields.problem("at", message);
            None
        }
    }
}

/// RFC 3339, or the same without an offset, which is UTC.
fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    let local = || {
        ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"]
            .iter()
            .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
    };
    let instant = DateTime::parse_from_rfc3339(text)
        .map(|at| at.with_timezone(&Utc))
        .ok()
        .or_else(|| local().map(|local| local.and_utc()))
        .filter(|at| (1970..=9999).contains(&at.year()))
        .ok_or_else(|| {
            let example = "write one such as \"2025-12-15T15:00:00Z\"";
            format!("{} is not an instant; {example}", quoted(text))
        })?;
    // A leap second has more than a thousand million nanoseconds.
    if instant.nanosecond() >= 1_000_000_000 {
        Err("is a leap second, which no clock here shows; write the second before".to_owned())
    } else if instant.nanosecond() % 1_000_000 != 0 {
        Err("is finer than a millisecond".to_owned())
    } else {
        Ok(instant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_without_an_offset_is_utc() {
        for (text, rfc3339) in [
            ("2025-12-15T15:00:00", "2025-12-15T15:00:00Z"),
            ("2025-12-15 15:00:00", "2025-12-15T15:00:00Z"),
            ("2025-12-15T15:00", "2025-12-15T15:00:00Z"),
            ("2025-12-15T15:00:00Z", "2025-12-15T15:00:00Z"),
            ("2025-12-15T15:00:00.250+01:00", "2025-12-15T14:00:00.250Z"),
        ] {
            assert_eq!(instant(text), Ok(rfc3339.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn what_is_no_instant_is_refused() {
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
            assert!(instant(text).is_err(), "{text} was accepted");
        }
    }
}
