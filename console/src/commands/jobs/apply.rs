//! `sexton jobs apply`: read and check everything, then one transaction.

use std::path::PathBuf;

use sexton_model::jobs_file::Problem;
use sexton_operations::jobs::apply::{AppliedJobs, ApplyOptions, apply};
use sexton_operations::jobs::files::JobsFiles;
use sexton_operations::params_schemas::validate_jobs;
use sexton_store::jobs::Applied;

use super::Apply;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::input_files::read_text;
use crate::session::Session;
use crate::show::{line, lines};

/// The most jobs of a kind that are named to people.
const MAX_NAMED: usize = 50;
/// The most characters of one change.
const MAX_CHANGE_CHARS: usize = 300;

pub(super) async fn run(arguments: &Apply, session: &Session) -> Result<(), Failure> {
    let files = JobsFiles::read(&read_files(&arguments.files)?)?;
    let store = session.store().await?;
    let &Apply { dry_run, prune, .. } = arguments;
    let apply = async |dry_run| {
        apply(&store, &files, ApplyOptions { dry_run, prune }, &session.actor).await
    };
    if prune && !dry_run {
        let preview = apply(true).await?;
        let count = preview.paused.len();
        if count > 0 {
            let what = format!(
                "{count} active jobs are not in the files and will be paused ({})",
                line(&preview.paused.join(", "), 200)
            );
            confirm(&what, arguments.yes)?;
        }
    }
    let mismatches = validate_jobs(&store, &files.specs).await?;
    let ambiguous = files.ambiguous_days(session.now(&store).await?);
    let problems: Vec<Problem> = mismatches
        .iter()
        .map(|mismatch| files.mismatch_problem(mismatch))
        .chain(ambiguous.iter().map(|one| files.ambiguity_problem(one)))
        .collect();
    if arguments.strict && !problems.is_empty() {
        return Err(Failure::Problems(problems));
    }
    let applied = apply(dry_run).await?;
    if session.out.is_json() {
        let document = AppliedJobs::new(applied, mismatches, ambiguous, dry_run);
        return session.out.document(&document);
    }
    render(&applied, dry_run, session)?;
    warn(&problems);
    Ok(())
}

/// The files' names and texts.
fn read_files(paths: &[PathBuf]) -> Result<Vec<(String, String)>, Failure> {
    let read = |path: &PathBuf| -> Result<(String, String), Failure> {
        let name = path.display().to_string();
        let text = read_text(path)
            .map_err(|error| Failure::Failed(format!("{name} cannot be read: {error}")))?;
        Ok((name, text))
    };
    paths.iter().map(read).collect()
}

/// On standard error, since the jobs are applied.
fn warn(problems: &[Problem]) {
    for problem in problems.iter().take(MAX_NAMED) {
        eprintln!("sexton: warning: {}", lines(&problem.to_string()));
    }
    if problems.len() > MAX_NAMED {
        eprintln!("sexton: warning: … and {} more", problems.len() - MAX_NAMED);
    }
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
