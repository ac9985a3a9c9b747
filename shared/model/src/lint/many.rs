//! Lints many jobs together.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Duration, SecondsFormat, Utc};

use super::{Code, Finding, Severity};
use crate::cron::depends_on_name;
use crate::job::{JobSpec, Schedule};
use crate::plan::Timetable;

/// Default number of jobs in one minute that is a finding.
pub const DEFAULT_SAME_MINUTE_JOBS: usize = 10;
/// Maximum number of each job's firings that are checked, within [`LOOK_AHEAD`].
const MAX_FIRINGS_PER_JOB: usize = 24;
const LOOK_AHEAD: Duration = Duration::hours(24);
/// Maximum number of findings, and of jobs that one names.
const MAX_FINDINGS: usize = 20;
const MAX_NAMED: usize = 5;

/// Returns the minutes of the day after `now` in which at least `min_jobs` jobs are due, the fullest first; a minute
/// is a finding only if `min_jobs` of its jobs are in no earlier finding, so hourly jobs are one finding and not 24.
/// Jobs with an `H` do not count, because nobody chose their minute.
///
/// Checks 24 firings of each job. Each finding comes with the first of its jobs, by name. `None` if there was not
/// the time for all jobs, which it checks before each.
pub fn same_minute(
    jobs: &[JobSpec],
    min_jobs: usize,
    now: DateTime<Utc>,
    has_time: impl Fn() -> bool,
) -> Option<Vec<(String, Finding)>> {
    let mut minutes: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (index, job) in jobs.iter().enumerate() {
        if !has_time() {
            return None;
        }
        if matches!(&job.schedule, Schedule::Cron { expression } if depends_on_name(expression)) {
            continue;
        }
        let Ok(timetable) = Timetable::of(job) else { continue };
        let (mut at, mut previous) = (now, None);
        for _ in 0..MAX_FIRINGS_PER_JOB {
            let Some(firing) = timetable.next_after(at).filter(|at| *at - now <= LOOK_AHEAD) else {
                break;
            };
            let minute = firing.timestamp().div_euclid(60);
            if previous != Some(minute) {
                minutes.entry(minute).or_default().push(index);
            }
            (at, previous) = (firing, Some(minute));
        }
    }
    let mut full: Vec<(i64, Vec<usize>)> =
        minutes.into_iter().filter(|(_, jobs)| jobs.len() >= min_jobs).collect();
    full.sort_by_key(|(minute, jobs)| (std::cmp::Reverse(jobs.len()), *minute));
    let mut reported = HashSet::new();
    let mut findings = Vec::new();
    for (minute, due) in full {
        let fresh = due.iter().filter(|index| !reported.contains(*index)).count();
        if fresh < min_jobs || findings.len() == MAX_FINDINGS {
            continue;
        }
        let mut names: Vec<&str> = due.iter().map(|index| jobs[*index].name.as_str()).collect();
        names.sort_unstable();
        findings.push((names[0].to_owned(), finding(minute, &names)));
        reported.extend(due);
    }
    Some(findings)
}

fn finding(minute: i64, names: &[&str]) -> Finding {
    let at = DateTime::from_timestamp(minute.saturating_mul(60), 0).unwrap_or_default();
    let shown = names[..names.len().min(MAX_NAMED)].join(", ");
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "{} jobs are due in the minute of {}: {shown}{more}",
        names.len(),
        at.to_rfc3339_opts(SecondsFormat::Secs, true)
    );
    let instead = "H for the minute (H 3 * * *, H/15 * * * *) in those that need no particular one";
    Finding::new(Code::SameMinute, Severity::Warning, message, instead)
}
