//! Parses the limits of a job's schedule: `start`, `end`, `exclude`, `jitter`, `max_runs`.

use toml::Spanned;
use toml::de::DeValue;

use super::fields::{Fields, kind};
use super::limits::{JITTER, MAX_RUNS};
use super::schedule::moment;
use crate::job::{DateRange, Exclusions, MAX_EXCLUSIONS, ScheduleConstraints};
use crate::zone::Zone;

/// Parses the limits of a job whose schedule fields are `given`. Their instants are not resolved in the zone yet.
pub(super) fn read(fields: &mut Fields<'_, '_, '_>, given: &[&str]) -> ScheduleConstraints {
    let constraints = ScheduleConstraints {
        start: moment(fields, "start"),
        end: moment(fields, "end"),
        exclude: exclude(fields),
        jitter: fields.duration("jitter", JITTER),
        max_runs: fields.integer("max_runs", MAX_RUNS).map(|limit| limit as u32),
    };
    let repeats = given.iter().any(|kind| *kind != "at");
    for name in ["start", "end", "exclude", "max_runs"] {
        if fields.has(name) && !repeats {
            fields.problem(name, "has a meaning only with schedule or every");
        }
    }
    if fields.has("jitter") && given.is_empty() {
        fields.problem("jitter", "has a meaning only with schedule, every or at");
    }
    constraints
}

/// Refuses an end before the start.
pub(super) fn check_order(
    fields: &mut Fields<'_, '_, '_>,
    constraints: &ScheduleConstraints,
    zone: Zone,
) {
    if let (Some(start), Some(end)) = (constraints.start, constraints.end)
        && end.instant(zone) < start.instant(zone)
    {
        fields.problem("end", format!("{end} is before start = {start}"));
    }
}

fn exclude(fields: &mut Fields<'_, '_, '_>) -> Exclusions {
    const FIELD: &str = "exclude";
    let Some(value) = fields.raw(FIELD).map(Spanned::get_ref) else {
        return Exclusions::default();
    };
    let Some(list) = value.as_array() else {
        let message = format!("must be a list such as [\"2026-12-25\"], not {}", kind(value));
        fields.problem(FIELD, message);
        return Exclusions::default();
    };
    if list.len() > MAX_EXCLUSIONS {
        let number = list.len();
        fields.problem(FIELD, format!("has {number} entries; {MAX_EXCLUSIONS} at most"));
        return Exclusions::default();
    }
    let mut all = Vec::with_capacity(list.len());
    for value in list {
        let days = match value.get_ref() {
            DeValue::String(text) => DateRange::parse(text).map_err(|error| error.to_string()),
            DeValue::Datetime(date) => {
                DateRange::parse(&date.to_string()).map_err(|error| error.to_string())
            }
            other => Err(format!("a day must be text in quotes, not {}", kind(other))),
        };
        match days {
            Ok(days) => all.push(days),
            Err(message) => fields.problem_at(value.span().start, FIELD, message),
        }
    }
    all.into_iter().collect()
}
