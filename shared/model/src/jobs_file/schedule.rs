//! Parses when a job fires: `schedule`, `every`, `at` or none of them, and the zone.

use toml::Spanned;
use toml::de::DeValue;

use super::constraints;
use super::fields::{Fields, kind};
use crate::cron::{DayRule, Dialect, Dst, Expression};
use crate::duration;
use crate::job::{MAX_PERIOD, MIN_PERIOD, PastPolicy, Schedule, ScheduleConstraints};
use crate::moment::Moment;
use crate::zone::Zone;

/// The fields of which a job has at most one.
const KINDS: [&str; 3] = ["schedule", "every", "at"];

/// A job's schedule fields. A reported field has its default.
pub(super) struct ScheduleFields {
    pub(super) schedule: Schedule,
    pub(super) timezone: Zone,
    pub(super) dst: Dst,
    pub(super) days: Option<DayRule>,
    pub(super) constraints: ScheduleConstraints,
    pub(super) past: PastPolicy,
}

/// Parses when the job called `name` fires.
pub(super) fn read(fields: &mut Fields<'_, '_, '_>, name: &str) -> ScheduleFields {
    let given: Vec<_> = KINDS.into_iter().filter(|kind| fields.has(kind)).collect();
    if let [_, second, ..] = given[..] {
        let given = given.join(" and ");
        fields.problem(second, format!("the job has {given}; write only one of them"));
    }
    // All are parsed, so that all problems are found.
    let cron = cron(fields, name);
    let every = every(fields);
    let at = moment(fields, "at");
    let constraints = constraints::read(fields, &given);
    let wall = [at, constraints.start, constraints.end].into_iter().flatten().any(Moment::is_wall);
    let timezone = timezone(fields, wall);
    let zone = timezone.unwrap_or(Zone::UTC);
    // Without a valid zone, its wall times cannot be checked.
    let known = timezone.is_some() || !fields.has("timezone");
    let mut settled = |name, moment: Option<Moment>| {
        let moment = moment?;
        if known && let Err(unclear) = moment.resolve(zone) {
            fields.problem(name, unclear.to_string());
        }
        // One representation for each meaning.
        Some(if zone.is_utc() { moment.in_utc() } else { moment })
    };
    let at = settled("at", at);
    let (start, end) = (settled("start", constraints.start), settled("end", constraints.end));
    let constraints = ScheduleConstraints { start, end, ..constraints };
    if known {
        constraints::check_order(fields, &constraints, zone);
    }
    ScheduleFields {
        schedule: cron.or(every).or(at.map(|at| Schedule::At { at })).unwrap_or(Schedule::None),
        timezone: zone,
        dst: dst(fields).unwrap_or_default(),
        days: days(fields),
        constraints,
        past: past(fields).unwrap_or_default(),
    }
}

/// Parses the zone. Refuses it if nothing depends on it.
fn timezone(fields: &mut Fields<'_, '_, '_>, wall: bool) -> Option<Zone> {
    const FIELD: &str = "timezone";
    let name = fields.text(FIELD, usize::MAX)?;
    match Zone::parse(name) {
        Ok(zone) => {
            if !zone.is_utc() && !wall && !fields.has("schedule") && !fields.has("exclude") {
                let message = "has a meaning only with schedule, with exclude, or with at, start or \
                               end without an offset: periods count in UTC";
                fields.problem(FIELD, message);
            }
            // One name for each meaning, so that another name alone is no change.
            Some(if zone.is_utc() { Zone::UTC } else { zone })
        }
        Err(error) => {
            fields.problem(FIELD, error.to_string());
            None
        }
    }
}

/// Parses the policy for clock changes.
fn dst(fields: &mut Fields<'_, '_, '_>) -> Option<Dst> {
    let dst = fields.choice("dst", Dst::parse, &Dst::WORDS, &[])?;
    if !fields.has("schedule") {
        fields.problem("dst", "has a meaning only with schedule");
    }
    Some(dst)
}

/// Parses the combination of the day fields. Accepted also where it decides nothing: a team may write one word into all
/// its jobs.
fn days(fields: &mut Fields<'_, '_, '_>) -> Option<DayRule> {
    let days = fields.choice("days", DayRule::parse, &DayRule::WORDS, &[])?;
    if !fields.has("schedule") {
        fields.problem("days", "has a meaning only with schedule");
    }
    Some(days)
}

fn past(fields: &mut Fields<'_, '_, '_>) -> Option<PastPolicy> {
    let past = fields.choice("past", PastPolicy::parse, &["refuse", "run"], &[])?;
    if !fields.has("at") {
        fields.problem("past", "has a meaning only with at");
    }
    Some(past)
}

fn cron(fields: &mut Fields<'_, '_, '_>, name: &str) -> Option<Schedule> {
    // The parser has its own length limit.
    let text = fields.text("schedule", usize::MAX)?;
    match Expression::parse(text, Dialect::Any, name) {
        Ok(_) => Some(Schedule::Cron { expression: text.to_owned() }),
        Err(error) => {
            fields.problem("schedule", error.to_string());
            None
        }
    }
}

fn every(fields: &mut Fields<'_, '_, '_>) -> Option<Schedule> {
    let period = fields.duration("every", MIN_PERIOD..=MAX_PERIOD);
    let phase = fields.duration("phase", std::time::Duration::ZERO..=MAX_PERIOD);
    if phase.is_some() && !fields.has("every") {
        fields.problem("phase", "has a meaning only with every");
    }
    let (period, phase) = (period?, phase.unwrap_or_default());
    if phase >= period {
        let [phase, period] = [phase, period].map(duration::format);
        let message = format!(
            "{phase} is not less than every = {period}; a firing is that much after a multiple of \
             the period"
        );
        fields.problem("phase", message);
    }
    Some(Schedule::Every { period, phase })
}

/// Parses an instant, or a wall time of the job's zone.
pub(super) fn moment(fields: &mut Fields<'_, '_, '_>, name: &str) -> Option<Moment> {
    let parsed = match fields.raw(name).map(Spanned::get_ref)? {
        DeValue::String(text) => Moment::parse(text).map_err(|error| error.to_string()),
        DeValue::Datetime(datetime) => {
            Moment::parse(&datetime.to_string()).map_err(|error| error.to_string())
        }
        other => Err(format!("must be an instant, not {}", kind(other))),
    };
    match parsed {
        Ok(moment) => Some(moment),
        Err(message) => {
            fields.problem(name, message);
            None
        }
    }
}
