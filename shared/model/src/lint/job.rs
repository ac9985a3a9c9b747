//! Lints one job: its expression, and how often it is due.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::expression::findings_of;
use super::{Code, Finding, Severity};
use crate::cron::{DayRule, Dst};
use crate::duration;
use crate::job::{JobSpec, Schedule};
use crate::plan::Timetable;
use crate::zone::Zone;

/// Minimum number of attempts for a conclusion.
pub const MIN_RUNS: u32 = 5;
/// Maximum number of firings whose distances are compared.
const MAX_FIRINGS: usize = 200;

/// Run times of a job's latest attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunTimes {
    /// Number of attempts.
    pub runs: u32,
    /// The 95th percentile.
    pub p95: Duration,
}

/// Returns the findings about an expression alone; one that does not parse is a finding, too.
pub fn of_expression(
    text: &str,
    name: &str,
    zone: Zone,
    dst: Dst,
    days: Option<DayRule>,
    now: DateTime<Utc>,
) -> Vec<Finding> {
    findings_of(text, name, zone, dst, days, now).unwrap_or_else(|error| {
        let instead = "what the message says; docs/reference/cron.md lists what there is";
        vec![Finding::new(Code::Unreadable, Severity::Error, error.to_string(), instead)]
    })
}

/// Returns the findings about a job with these run times; `None` if too few are known.
pub fn of_job(spec: &JobSpec, took: Option<RunTimes>, now: DateTime<Utc>) -> Vec<Finding> {
    let mut findings = match &spec.schedule {
        Schedule::Cron { expression } => {
            of_expression(expression, &spec.name, spec.timezone, spec.dst, spec.days, now)
        }
        _ => Vec::new(),
    };
    let took = took.filter(|took| took.runs >= MIN_RUNS);
    if let Some(took) = took
        && let Ok(timetable) = Timetable::of(spec)
    {
        findings.extend(too_often(spec, &timetable, took, now));
    }
    findings
}

fn too_often(
    spec: &JobSpec,
    timetable: &Timetable,
    took: RunTimes,
    now: DateTime<Utc>,
) -> Option<Finding> {
    let shortest = shortest_distance(timetable, now)?;
    if shortest >= took.p95 {
        return None;
    }
    // Fractions of a second do not matter for a schedule.
    let whole = |span: Duration| duration::format(Duration::from_millis(span.as_millis() as u64));
    let message = format!(
        "it is due every {} at the closest, and 95 of 100 of its last {} attempts took up to {}: \
         the next firing often finds it under way (overlap = \"{}\")",
        whole(shortest),
        took.runs,
        whole(took.p95),
        spec.overlap.as_str()
    );
    let instead = format!("a period of more than {}", whole(took.p95));
    Some(Finding::new(Code::TooOften, Severity::Warning, message, instead))
}

/// Returns the shortest distance between two of the next firings.
fn shortest_distance(timetable: &Timetable, now: DateTime<Utc>) -> Option<Duration> {
    let mut previous = timetable.next_after(now)?;
    let mut shortest = None;
    for _ in 1..MAX_FIRINGS {
        let Some(next) = timetable.next_after(previous) else { break };
        let distance = (next - previous).to_std().ok()?;
        shortest = Some(shortest.map_or(distance, |least: Duration| least.min(distance)));
        previous = next;
    }
    shortest
}
