//! Likely mistakes in jobs: of files, and of the database.

use std::collections::HashMap;
use std::fmt;
use std::time::Instant;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::alerts_file::{self, AlertsProblem};
use sexton_model::job::JobSpec;
use sexton_model::jobs_file::{self, Problem};
use sexton_model::lint::{Code, Finding, RunTimes, Severity, of_job, of_policy, same_minute};
use sexton_model::routing::Route;
use sexton_store::Store;
use sexton_store::jobs::list_run_times;
use uuid::Uuid;

use super::files::find_name_lines;
use super::scheduled::{ScheduledJobs, load_jobs};
use crate::error::OperationError;

/// Maximum number of findings of one report, which counts the others.
pub const MAX_LISTED_FINDINGS: usize = 1_000;
/// The smallest number of jobs in one minute that may be a finding.
pub const MIN_SAME_MINUTE_JOBS: u32 = 2;
/// The largest number of jobs in one minute that may be a finding.
pub const MAX_SAME_MINUTE_JOBS: u32 = 20_000;
/// Jobs of one question for run times.
const BATCH_JOBS: usize = 500;

/// A finding and where it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LocatedFinding {
    /// The file; `null`: it is about an expression, or a job of the database.
    pub file: Option<String>,
    /// The line in it, counted from 1.
    pub line: Option<usize>,
    /// The job; `null`: it is about none, or about many.
    pub job: Option<String>,
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
}

impl fmt::Display for LocatedFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, _) => {}
        }
        if let Some(job) = &self.job {
            write!(f, "job {job:?}: ")?;
        }
        let Finding { code, severity, message, instead } = &self.finding;
        let (severity, code) = (severity.as_str(), code.as_str());
        write!(f, "{severity} {code}: {message}\n    write {instead}")
    }
}

/// What was examined, as of when, and what was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LintReport {
    /// As of when.
    pub from: DateTime<Utc>,
    /// Number of schedules that were examined.
    pub looked_at: usize,
    /// Number of findings, with the problems of files that are only counted.
    pub count: usize,
    /// At most 1,000 of them, by file, line and job.
    pub findings: Vec<LocatedFinding>,
}

impl LintReport {
    /// Makes the report of those that have at least the severity `least`.
    pub fn new(
        mut found: Vec<LocatedFinding>,
        looked_at: usize,
        from: DateTime<Utc>,
        least: Severity,
    ) -> Self {
        found.retain(|located| located.finding.severity >= least);
        found.sort_by(|a, b| {
            (&a.file, a.line, &a.job, a.finding.code).cmp(&(
                &b.file,
                b.line,
                &b.job,
                b.finding.code,
            ))
        });
        let count = found.len();
        found.truncate(MAX_LISTED_FINDINGS);
        Self { from, looked_at, count, findings: found }
    }
}

/// The active jobs of a database, with how long their attempts took.
#[derive(Debug)]
pub struct TimedJobs {
    /// The jobs, by name.
    jobs: Vec<(JobSpec, Option<RunTimes>)>,
    /// Whether these are all.
    pub complete: bool,
}

impl TimedJobs {
    /// Returns how many these are.
    pub const fn count(&self) -> usize {
        self.jobs.len()
    }
}

/// Loads the active jobs, as [`load_jobs`] does, with how long their attempts took.
///
/// # Errors
///
/// Those of the database.
pub async fn load_timed_jobs(store: &Store) -> Result<TimedJobs, OperationError> {
    let ScheduledJobs { jobs, complete } = load_jobs(store, &[]).await?;
    let ids: Vec<Uuid> = jobs.iter().map(|job| job.row.id).collect();
    let mut attempt_times: HashMap<Uuid, RunTimes> = HashMap::new();
    for batch in ids.chunks(BATCH_JOBS) {
        attempt_times.extend(list_run_times(store, batch).await?);
    }
    let timed = jobs.into_iter().map(|job| {
        let times = attempt_times.get(&job.row.id).copied();
        (job.spec, times)
    });
    Ok(TimedJobs { jobs: timed.collect(), complete })
}

/// Which policies of jobs are examined.
#[derive(Debug, Default)]
enum JobPolicies {
    /// None.
    #[default]
    Ignored,
    /// All, with these routes; `None`: they could not be read, so no destination is judged.
    Judged(Option<Vec<Route>>),
}

/// Everything that is examined, and where it stands. Policies count for the jobs that are added after them.
#[derive(Debug)]
pub struct Linter {
    now: DateTime<Utc>,
    jobs: Vec<JobSpec>,
    /// By index: file and line.
    places: Vec<(Option<String>, Option<usize>)>,
    found: Vec<LocatedFinding>,
    /// Number of problems of files that are only counted.
    unlisted: usize,
    policies: JobPolicies,
    deadline: Option<Instant>,
    complete: bool,
}

impl Linter {
    /// Makes one that judges as of `now`, and no policies.
    pub fn new(now: DateTime<Utc>) -> Self {
        let policies = JobPolicies::default();
        Self {
            now,
            jobs: Vec::new(),
            places: Vec::new(),
            found: Vec::new(),
            unlisted: 0,
            policies,
            deadline: None,
            complete: true,
        }
    }

    /// Makes it examine no other job from `deadline` on.
    pub const fn stop_at(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    /// Returns whether all that was added was examined so far.
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    fn has_time(&self) -> bool {
        self.deadline.is_none_or(|deadline| Instant::now() < deadline)
    }

    /// Judges the policies of jobs by these routes.
    pub fn judge_policies(&mut self, routes: Vec<Route>) {
        self.policies = JobPolicies::Judged(Some(routes));
    }

    /// Judges the policies of jobs by the routes of an alerts file. Its problems are findings, and then no destination is judged.
    pub fn judge_policies_by_file(&mut self, file: &str, text: &str) {
        let routes = match alerts_file::parse(file, text) {
            Ok(alerts) => Some(alerts.routes),
            Err(problems) => {
                for AlertsProblem { line, place, field, message, unlisted, .. } in problems {
                    if unlisted > 0 {
                        self.unlisted += unlisted;
                        continue;
                    }
                    let parts = [place, field, Some(message)];
                    let message = parts.into_iter().flatten().collect::<Vec<_>>().join(": ");
                    self.add_unreadable(file, line, None, message);
                }
                None
            }
        };
        self.policies = JobPolicies::Judged(routes);
    }

    /// Adds the jobs of a jobs file. If it has problems, each of them is a finding, and its jobs are not examined. Problems
    /// beyond those that the parser lists are only counted.
    pub fn add_jobs_file(&mut self, file: &str, text: &str) {
        match jobs_file::parse(file, text) {
            Ok(jobs) => {
                let lines = find_name_lines(text);
                for job in jobs {
                    let line = lines.get(job.name.as_str()).copied();
                    self.add_job(job, (Some(file.to_owned()), line), None);
                }
            }
            Err(problems) => {
                for Problem { line, job, field, message, unlisted, .. } in problems {
                    if unlisted > 0 {
                        self.unlisted += unlisted;
                        continue;
                    }
                    let message = match field {
                        Some(field) => format!("{field}: {message}"),
                        None => message,
                    };
                    self.add_unreadable(file, line, job, message);
                }
            }
        }
    }

    /// Adds jobs of a database.
    pub fn add_timed_jobs(&mut self, timed: TimedJobs) {
        for (job, attempt_times) in timed.jobs {
            self.add_job(job, (None, None), attempt_times);
        }
    }

    /// Adds a job, with its file and its line; leaves it out if the time is up.
    pub fn add_job(
        &mut self,
        job: JobSpec,
        place: (Option<String>, Option<usize>),
        attempt_times: Option<RunTimes>,
    ) {
        if !self.has_time() {
            self.complete = false;
            return;
        }
        let policies = match &self.policies {
            JobPolicies::Ignored => Vec::new(),
            JobPolicies::Judged(routes) => of_policy(&job, routes.as_deref()),
        };
        let found = of_job(&job, attempt_times, self.now).into_iter().chain(policies);
        let found = found.map(|finding| LocatedFinding {
            file: place.0.clone(),
            line: place.1,
            job: Some(job.name.clone()),
            finding,
        });
        self.found.extend(found);
        self.places.push(place);
        self.jobs.push(job);
    }

    /// Adds what cannot be read in a file.
    pub fn add_unreadable(
        &mut self,
        file: &str,
        line: Option<usize>,
        job: Option<String>,
        why: String,
    ) {
        let instead = "what the message says";
        let finding = Finding {
            code: Code::Unreadable,
            severity: Severity::Error,
            message: why,
            instead: instead.to_owned(),
        };
        self.found.push(LocatedFinding { file: Some(file.to_owned()), line, job, finding });
    }

    /// Examines the jobs together, for minutes in which at least `min_jobs` are due; not if some were left out, since it is unknown then
    /// how many are due.
    pub fn examine_together(&mut self, min_jobs: usize) {
        let found = if self.complete {
            same_minute(&self.jobs, min_jobs, self.now, || self.has_time())
        } else {
            None
        };
        self.complete = found.is_some();
        for (name, finding) in found.unwrap_or_default() {
            let index = self.jobs.iter().position(|job| job.name == name).unwrap_or_default();
            // Its place is that of the first of many jobs, and so the finding is no one job's.
            let (file, line) = self.places[index].clone();
            self.found.push(LocatedFinding { file, line, job: None, finding });
        }
    }

    /// Reports the findings of at least the severity `least`.
    pub fn finish(self, least: Severity) -> LintReport {
        let mut report = LintReport::new(self.found, self.jobs.len(), self.now, least);
        // Problems are errors, so no lowest severity leaves them out.
        report.count += self.unlisted;
        report
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Each has a finding by itself, and both are due in one minute.
    const JOBS: [&str; 2] = [
        "[[job]]\nname = \"a.one\"\ntask = \"t\"\nschedule = \"* 3 * * *\"\n",
        "[[job]]\nname = \"a.two\"\ntask = \"t\"\nschedule = \"* 3 * * *\"\n",
    ];

    /// Lints the jobs; the time is up, or far away, before each of them and before they are examined together.
    fn lint(is_up: [bool; 3]) -> (usize, Vec<Code>, bool) {
        let mut linter = Linter::new("2027-01-01T00:00:00Z".parse().unwrap());
        let deadline = |is_up| {
            let remaining = if is_up { Duration::ZERO } else { Duration::from_hours(1) };
            Instant::now() + remaining
        };
        for (text, is_up) in JOBS.iter().zip(is_up) {
            linter.stop_at(deadline(is_up));
            linter.add_jobs_file("jobs.toml", text);
        }
        linter.stop_at(deadline(is_up[2]));
        linter.examine_together(2);
        let complete = linter.is_complete();
        let report = linter.finish(Severity::Note);
        let codes = report.findings.iter().map(|located| located.finding.code).collect();
        (report.looked_at, codes, complete)
    }

    #[test]
    fn what_is_not_examined_before_the_time_is_up_makes_it_incomplete() {
        let (one, both) = (Code::EveryMinute, Code::SameMinute);
        let (looked_at, mut codes, complete) = lint([false; 3]);
        codes.sort_unstable();
        assert_eq!((looked_at, codes, complete), (2, vec![one, one, both], true));
        assert_eq!(lint([false, false, true]), (2, vec![one, one], false));
        assert_eq!(lint([false, true, true]), (1, vec![one], false));
        assert_eq!(lint([true; 3]), (0, Vec::new(), false));
        // Left out once, it stays out.
        assert_eq!(lint([true, false, false]), (1, vec![one], false));
    }

    #[test]
    fn without_a_deadline_all_is_examined() {
        let mut linter = Linter::new("2027-01-01T00:00:00Z".parse().unwrap());
        linter.add_jobs_file("jobs.toml", &JOBS.concat());
        linter.examine_together(2);
        assert!(linter.is_complete());
        let report = linter.finish(Severity::Note);
        assert_eq!((report.looked_at, report.count), (2, 3));
    }
}
