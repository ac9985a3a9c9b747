//! The jobs of files and of the database, with their places.

use std::collections::HashMap;
use std::path::Path;

use chrono::{DateTime, Utc};
use sexton_model::job::{JobSpec, Schedule};
use sexton_model::jobs_file::{self, Problem};
use sexton_model::lint::{Code, Finding, RunTimes, Severity, of_job, same_minute};
use sexton_store::jobs::list_run_times;
use uuid::Uuid;

use super::{Lint, Placed};
use crate::commands::jobs::coming::{Jobs, read};
use crate::commands::jobs::text_and_lines::{lines_of_names, text};
use crate::failure::Failure;
use crate::import::{self, crontab};
use crate::session::Session;

/// Jobs of one question for run times.
const BATCH: usize = 500;

/// Everything that is looked at, and where it stands.
#[derive(Default)]
struct Looked {
    jobs: Vec<JobSpec>,
    /// By index: file and line.
    places: Vec<(Option<String>, Option<usize>)>,
    found: Vec<Placed>,
}

impl Looked {
    fn finish(mut self, arguments: &Lint, now: DateTime<Utc>) -> (usize, Vec<Placed>) {
        for (name, finding) in same_minute(&self.jobs, arguments.same_minute as usize, now) {
            let index = self.jobs.iter().position(|job| job.name == name).unwrap_or_default();
            // Its place is that of the first of many jobs, and so the finding is no one job's.
            let (file, line) = self.places[index].clone();
            self.found.push(Placed { file, line, job: None, finding });
        }
        (self.jobs.len(), self.found)
    }

    fn look(
        &mut self,
        job: JobSpec,
        place: (Option<String>, Option<usize>),
        took: Option<RunTimes>,
        now: DateTime<Utc>,
    ) {
        let found = of_job(&job, took, now).into_iter().map(|finding| Placed {
            file: place.0.clone(),
            line: place.1,
            job: Some(job.name.clone()),
            finding,
        });
        self.found.extend(found);
        self.places.push(place);
        self.jobs.push(job);
    }

    fn unreadable(&mut self, file: &str, line: Option<usize>, job: Option<String>, why: String) {
        let instead = "what the message says";
        let finding = Finding {
            code: Code::Unreadable,
            severity: Severity::Error,
            message: why,
            instead: instead.to_owned(),
        };
        self.found.push(Placed { file: Some(file.to_owned()), line, job, finding });
    }
}

/// The jobs of the files. What cannot be read in them is a finding.
///
/// # Errors
///
/// [`Failure::Failed`] for a file that cannot be read at all.
pub(super) fn files(arguments: &Lint, now: DateTime<Utc>) -> Result<(usize, Vec<Placed>), Failure> {
    let mut looked = Looked::default();
    for path in &arguments.files {
        let name = path.display().to_string();
        let text = text(path)
            .map_err(|error| Failure::Failed(format!("{name} cannot be read: {error}")))?;
        if path.extension().is_some_and(|extension| extension == "toml") {
            jobs_of(&mut looked, &name, &text, now);
        } else {
            entries_of(&mut looked, path, &text, arguments, now)?;
        }
    }
    Ok(looked.finish(arguments, now))
}

fn jobs_of(looked: &mut Looked, name: &str, text: &str, now: DateTime<Utc>) {
    match jobs_file::parse(name, text) {
        Ok(jobs) => {
            let lines = lines_of_names(text);
            for job in jobs {
                let line = lines.get(job.name.as_str()).copied();
                looked.look(job, (Some(name.to_owned()), line), None, now);
            }
        }
        Err(problems) => {
            for Problem { line, job, field, message, .. } in problems {
                let message = match field {
                    Some(field) => format!("{field}: {message}"),
                    None => message,
                };
                looked.unreadable(name, line, job, message);
            }
        }
    }
}

fn entries_of(
    looked: &mut Looked,
    path: &Path,
    text: &str,
    arguments: &Lint,
    now: DateTime<Utc>,
) -> Result<(), Failure> {
    let name = path.display().to_string();
    let options = crontab::Options { system: arguments.system, zone: arguments.tz, service: None };
    let mut import = crontab::Import::new(&options);
    import
        .add(&name, text)
        .map_err(|refused: import::Refused| Failure::Failed(format!("{name}: {refused}")))?;
    let read = import.unchecked();
    for entry in read.entries {
        let schedule = Schedule::Cron { expression: entry.schedule };
        let job = JobSpec { timezone: entry.zone, ..JobSpec::new(entry.name, "t", schedule) };
        looked.look(job, (Some(name.clone()), Some(entry.line)), None, now);
    }
    for left in read.left_out.into_iter().filter(|left| left.entry) {
        looked.unreadable(&name, left.line, None, left.to_string());
    }
    Ok(())
}

/// All active jobs of the database, with how long their attempts took.
///
/// # Errors
///
/// Those of the database.
pub(super) async fn database(
    arguments: &Lint,
    session: &Session,
) -> Result<(DateTime<Utc>, usize, Vec<Placed>), Failure> {
    let store = session.store().await?;
    let Jobs { jobs, complete } = read(&store, &[]).await?;
    let now = match arguments.from {
        Some(from) => from,
        None => session.now(&store).await?,
    };
    if !complete {
        eprintln!("sexton: only {} jobs were looked at", jobs.len());
    }
    let ids: Vec<Uuid> = jobs.iter().map(|job| job.row.id).collect();
    let mut took: HashMap<Uuid, RunTimes> = HashMap::new();
    for batch in ids.chunks(BATCH) {
        took.extend(list_run_times(&store, batch).await?);
    }
    let mut looked = Looked::default();
    for job in jobs {
        looked.look(job.spec, (None, None), took.get(&job.row.id).copied(), now);
    }
    let (count, found) = looked.finish(arguments, now);
    Ok((now, count, found))
}
