//! The jobs of files and of the database, with their places.

use std::collections::HashMap;
use std::path::Path;

use chrono::{DateTime, Utc};
use sexton_model::alerts_file::{self, AlertsProblem, MAX_FILE_BYTES};
use sexton_model::job::{JobSpec, Schedule};
use sexton_model::jobs_file::{self, Problem};
use sexton_model::lint::{Code, Finding, RunTimes, Severity, of_job, of_policy, same_minute};
use sexton_model::routing::Route;
use sexton_operations::alerts;
use sexton_operations::jobs::files::find_name_lines;
use sexton_operations::jobs::scheduled::{ScheduledJobs, load_jobs};
use sexton_service::clock;
use sexton_store::jobs::list_run_times;
use uuid::Uuid;

use super::{Examined, LocatedFinding, Policies, Sources};
use crate::failure::Failure;
use crate::import::{self, crontab};
use crate::input_files::{read_text, read_text_up_to};
use crate::session::Session;

/// Jobs of one question for run times.
const BATCH_JOBS: usize = 500;

/// Everything that is looked at, and where it stands.
#[derive(Default)]
struct Linter {
    jobs: Vec<JobSpec>,
    /// By index: file and line.
    places: Vec<(Option<String>, Option<usize>)>,
    found: Vec<LocatedFinding>,
    policies: JobPolicies,
}

/// Which policies of jobs are looked at.
#[derive(Default)]
enum JobPolicies {
    /// None.
    #[default]
    Ignored,
    /// All, with these routes; `None`: they could not be read, so no destination is judged.
    Judged(Option<Vec<Route>>),
}

impl Linter {
    fn finish(mut self, arguments: &Sources, now: DateTime<Utc>) -> Examined {
        for (name, finding) in same_minute(&self.jobs, arguments.same_minute as usize, now) {
            let index = self.jobs.iter().position(|job| job.name == name).unwrap_or_default();
            // Its place is that of the first of many jobs, and so the finding is no one job's.
            let (file, line) = self.places[index].clone();
            self.found.push(LocatedFinding { file, line, job: None, finding });
        }
        Examined { now, schedule_count: self.jobs.len(), found: self.found }
    }

    fn add_job(
        &mut self,
        job: JobSpec,
        place: (Option<String>, Option<usize>),
        attempt_times: Option<RunTimes>,
        now: DateTime<Utc>,
    ) {
        let policies = match &self.policies {
            JobPolicies::Ignored => Vec::new(),
            JobPolicies::Judged(routes) => of_policy(&job, routes.as_deref()),
        };
        let found = of_job(&job, attempt_times, now).into_iter().chain(policies);
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

    fn add_unreadable(
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
}

/// Looks at the jobs of the files or of the database. What cannot be read in a file is a finding.
///
/// # Errors
///
/// [`Failure::Failed`] for a file that cannot be read at all, and those of the database.
pub(super) async fn examine(
    arguments: &Sources,
    policies: &Policies,
    session: &Session,
) -> Result<Examined, Failure> {
    let mut linter = Linter::default();
    if policies.policy {
        linter.policies = JobPolicies::Judged(match &policies.alerts {
            Some(path) => read_alerts(&mut linter, path)?,
            None => Some(alerts::read(&session.store().await?).await?.routes),
        });
    }
    if arguments.database {
        return lint_database(linter, arguments, session).await;
    }
    let now = arguments.from.unwrap_or_else(clock::now);
    for path in &arguments.files {
        let name = path.display().to_string();
        let text = read_text(path)
            .map_err(|error| Failure::Failed(format!("{name} cannot be read: {error}")))?;
        if path.extension().is_some_and(|extension| extension == "toml") {
            lint_jobs_file(&mut linter, &name, &text, now);
        } else {
            lint_crontab(&mut linter, path, &text, arguments, now)?;
        }
    }
    Ok(linter.finish(arguments, now))
}

/// The routes of an alerts file; `None` if it has problems, which are findings.
fn read_alerts(linter: &mut Linter, path: &Path) -> Result<Option<Vec<Route>>, Failure> {
    let name = path.display().to_string();
    // A byte more than a file may have, so that the parser refuses it.
    let text = read_text_up_to(path, MAX_FILE_BYTES as u64 + 1)
        .map_err(|error| Failure::Failed(format!("{name} cannot be read: {error}")))?;
    match alerts_file::parse(&name, &text) {
        Ok(file) => Ok(Some(file.routes)),
        Err(problems) => {
            for AlertsProblem { line, place, field, message, .. } in problems {
                let parts = [place, field, Some(message)];
                let message = parts.into_iter().flatten().collect::<Vec<_>>().join(": ");
                linter.add_unreadable(&name, line, None, message);
            }
            Ok(None)
        }
    }
}

fn lint_jobs_file(linter: &mut Linter, name: &str, text: &str, now: DateTime<Utc>) {
    match jobs_file::parse(name, text) {
        Ok(jobs) => {
            let lines = find_name_lines(text);
            for job in jobs {
                let line = lines.get(job.name.as_str()).copied();
                linter.add_job(job, (Some(name.to_owned()), line), None, now);
            }
        }
        Err(problems) => {
            for Problem { line, job, field, message, .. } in problems {
                let message = match field {
                    Some(field) => format!("{field}: {message}"),
                    None => message,
                };
                linter.add_unreadable(name, line, job, message);
            }
        }
    }
}

fn lint_crontab(
    linter: &mut Linter,
    path: &Path,
    text: &str,
    arguments: &Sources,
    now: DateTime<Utc>,
) -> Result<(), Failure> {
    let name = path.display().to_string();
    let options = crontab::Options { system: arguments.system, zone: arguments.tz, service: None };
    let mut import = crontab::Import::new(&options);
    import
        .add(&name, text)
        .map_err(|refused: import::ImportError| Failure::Failed(format!("{name}: {refused}")))?;
    let read = import.unchecked();
    for entry in read.entries {
        let schedule = Schedule::Cron { expression: entry.schedule };
        let job = JobSpec { timezone: entry.zone, ..JobSpec::new(entry.name, "t", schedule) };
        linter.add_job(job, (Some(name.clone()), Some(entry.line)), None, now);
    }
    for left in read.left_out.into_iter().filter(|left| left.entry) {
        linter.add_unreadable(&name, left.line, None, left.to_string());
    }
    Ok(())
}

/// Looks at all active jobs of the database, with how long their attempts took.
async fn lint_database(
    mut linter: Linter,
    arguments: &Sources,
    session: &Session,
) -> Result<Examined, Failure> {
    let store = session.store().await?;
    let ScheduledJobs { jobs, complete } = load_jobs(&store, &[]).await?;
    let now = match arguments.from {
        Some(from) => from,
        None => session.now(&store).await?,
    };
    if !complete {
        eprintln!("sexton: only {} jobs were looked at", jobs.len());
    }
    let ids: Vec<Uuid> = jobs.iter().map(|job| job.row.id).collect();
    let mut attempt_times: HashMap<Uuid, RunTimes> = HashMap::new();
    for batch in ids.chunks(BATCH_JOBS) {
        attempt_times.extend(list_run_times(&store, batch).await?);
    }
    for job in jobs {
        linter.add_job(job.spec, (None, None), attempt_times.get(&job.row.id).copied(), now);
    }
    Ok(linter.finish(arguments, now))
}
