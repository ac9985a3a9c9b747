//! `sexton jobs apply`: read and check everything, then one transaction.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use sexton_model::id::JobId;
use sexton_model::job::JobSpec;
use sexton_model::jobs_file::{self, Problem};
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::jobs::{self, Applied, ApplyError};
use uuid::Uuid;

use super::Apply;
use super::input_files::{find_name_lines, read_text};
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::params_validation::{self, JobMismatch};
use crate::session::Session;
use crate::show::{line, lines};

/// The most jobs of a kind that are named to people.
const MAX_NAMED: usize = 50;
/// The most characters of one change.
const MAX_CHANGE_CHARS: usize = 300;

pub(super) async fn run(arguments: &Apply, session: &Session) -> Result<(), Failure> {
    let files = Files::read(&arguments.files)?;
    let store = session.store().await?;
    let request = |dry_run| jobs::Apply {
        specs: &files.specs,
        actor: &session.actor,
        dry_run,
        prune: arguments.prune,
    };
    if arguments.prune && !arguments.dry_run {
        let preview = call(&store, request(true), &files).await?;
        let count = preview.paused.len();
        if count > 0 {
            let what = format!(
                "{count} active jobs are not in the files and will be paused ({})",
                line(&preview.paused.join(", "), 200)
            );
            confirm(&what, arguments.yes)?;
        }
    }
    let mismatches = params_validation::validate_jobs(&store, &files.specs).await?;
    let problems: Vec<Problem> =
        mismatches.iter().map(|mismatch| files.mismatch_problem(mismatch)).collect();
    if arguments.strict && !problems.is_empty() {
        return Err(Failure::Problems(problems));
    }
    let applied = call(&store, request(arguments.dry_run), &files).await?;
    let changed = [applied.created.len(), applied.changed.len(), applied.paused.len()];
    if !arguments.dry_run && changed.iter().sum::<usize>() > 0 {
        fault::point("console.applied");
    }
    if session.out.is_json() {
        return session.out.document(&document(&applied, &mismatches, arguments.dry_run));
    }
    render(&applied, arguments.dry_run, session)?;
    warn(&problems);
    Ok(())
}

/// On standard error, since what was asked for is done.
fn warn(problems: &[Problem]) {
    for problem in problems.iter().take(MAX_NAMED) {
        eprintln!("sexton: warning: {}", lines(&problem.to_string()));
    }
    if problems.len() > MAX_NAMED {
        eprintln!("sexton: warning: … and {} more", problems.len() - MAX_NAMED);
    }
}

async fn call(store: &Store, request: jobs::Apply<'_>, files: &Files) -> Result<Applied, Failure> {
    let fresh_id = || JobId::new(Uuid::now_v7());
    jobs::apply(store, request, fresh_id, None).await.map_err(|error| match error {
        ApplyError::Problems(problems) => {
            Failure::Problems(problems.into_iter().map(|problem| files.locate(problem)).collect())
        }
        ApplyError::TooMany(_) => Failure::Usage(format!("{error}; apply them in several calls")),
        ApplyError::Locked => Failure::Failed(error.to_string()),
        ApplyError::Store(error) => error.into(),
    })
}

/// What the files hold.
#[derive(Default)]
struct Files {
    specs: Vec<JobSpec>,
    /// By job, for problems that are found later: file and line.
    places: HashMap<String, (String, Option<usize>)>,
}

impl Files {
    /// Reads all files and reports the problems of all of them.
    fn read(paths: &[impl AsRef<Path>]) -> Result<Self, Failure> {
        let mut files = Self::default();
        let mut problems = Vec::new();
        for path in paths {
            let name = path.as_ref().display().to_string();
            let text = read_text(path.as_ref())
                .map_err(|error| Failure::Failed(format!("{name} cannot be read: {error}")))?;
            match jobs_file::parse(&name, &text) {
                Ok(specs) => problems.extend(files.add(&name, &text, specs)),
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() { Ok(files) } else { Err(Failure::Problems(problems)) }
    }

    /// Takes in one file's jobs; returns those that another file has too, as problems.
    fn add(&mut self, file: &str, text: &str, specs: Vec<JobSpec>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let lines = find_name_lines(text);
        for spec in specs {
            let line = lines.get(spec.name.as_str()).copied();
            if let Some((other, _)) = self.places.get(&spec.name) {
                problems.push(Problem {
                    file: file.to_owned(),
                    line,
                    job: Some(spec.name),
                    field: Some("name".to_owned()),
                    message: format!("this name is already used by a job in {other}"),
                });
                continue;
            }
            self.places.insert(spec.name.clone(), (file.to_owned(), line));
            self.specs.push(spec);
        }
        problems
    }

    fn mismatch_problem(&self, mismatch: &JobMismatch) -> Problem {
        self.locate(Problem {
            file: String::new(),
            line: None,
            job: Some(mismatch.job.clone()),
            field: Some("params".to_owned()),
            message: format!(
                "do not fit what a worker at work says of the task: {}",
                mismatch.describe()
            ),
        })
    }

    fn locate(&self, mut problem: Problem) -> Problem {
        if let Some((file, line)) = problem.job.as_ref().and_then(|job| self.places.get(job)) {
            (problem.file, problem.line) = (file.clone(), *line);
        }
        problem
    }
}

fn document(applied: &Applied, mismatches: &[JobMismatch], dry_run: bool) -> Value {
    let changed = applied.changed.iter().map(|job| {
        let changes = job
            .changes
            .iter()
            .map(|change| (change.field.to_owned(), json!({"from": change.from, "to": change.to})));
        json!({"name": job.name, "changes": changes.collect::<Map<_, _>>()})
    });
    json!({
        "dry_run": dry_run,
        "created": applied.created,
        "changed": changed.collect::<Value>(),
        "unchanged": applied.unchanged,
        "paused": applied.paused,
        "still_paused": applied.still_paused,
        "not_paused": applied.not_paused,
        "misfits": mismatches,
    })
}

fn render(applied: &Applied, dry_run: bool, session: &Session) -> Result<(), Failure> {
    let out = &session.out;
    let print_lines = |lines: Vec<String>| {
        let more = lines.len().saturating_sub(MAX_NAMED);
        lines.iter().take(MAX_NAMED).try_for_each(|line| out.print(line))?;
        if more > 0 { out.print(format!("  … and {more} more")) } else { Ok(()) }
    };
    print_lines(applied.created.iter().map(|name| format!("+ {name}")).collect())?;
    let changes = applied.changed.iter().map(|job| {
        let fields = job
            .changes
            .iter()
            .map(|change| format!("\n    {}", line(&change.to_string(), MAX_CHANGE_CHARS)));
        format!("~ {}{}", job.name, fields.collect::<String>())
    });
    print_lines(changes.collect())?;
    print_lines(applied.paused.iter().map(|name| format!("- {name} (paused)")).collect())?;
    let counts = [
        (applied.created.len(), "created"),
        (applied.changed.len(), "changed"),
        (applied.unchanged.len(), "unchanged"),
        (applied.paused.len(), "paused"),
    ];
    let counts = counts.iter().map(|(count, word)| format!("{count} {word}"));
    let counts = counts.collect::<Vec<_>>().join(", ");
    out.print(if dry_run {
        format!("Nothing was written; it would be: {counts}.")
    } else {
        format!("{counts}.")
    })?;
    let listed = |names: &[String]| line(&names.join(", "), 200);
    if !applied.still_paused.is_empty() {
        let (count, names) = (applied.still_paused.len(), listed(&applied.still_paused));
        out.print(format!(
            "{count} of these jobs are paused and do not fire ({names}); `sexton jobs resume NAME` \
             starts them."
        ))?;
    }
    if !applied.not_paused.is_empty() {
        let (count, names) = (applied.not_paused.len(), listed(&applied.not_paused));
        out.print(format!(
            "{count} of these jobs fire although the file says paused ({names}), which counts only \
             when a job is created; `sexton jobs pause NAME` stops them."
        ))?;
    }
    Ok(())
}
