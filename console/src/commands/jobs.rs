//! `sexton jobs`: definitions.

mod apply;
mod browse;
mod start;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sexton_store::{Store, jobs};

use crate::failure::Failure;
use crate::session::Session;

/// Definitions: what runs, when.
#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// Make the database's jobs those of the files: all of them or, if anything is wrong, none
    Apply(Apply),
    /// List jobs by name, with their next firing and last execution
    List(List),
    /// Show one job: definition, next firings, last executions, gaps, what was done to it
    Show(Named),
    /// Run a job now, also if it is paused or still under way
    Trigger(Trigger),
    /// Stop a job's firings; what is under way goes on
    Pause(Pause),
    /// Let a job fire again from now on; what passed meanwhile is recorded, not run
    Resume(Resume),
}

/// Which files to apply, and how.
#[derive(Debug, Args)]
pub struct Apply {
    /// Jobs files; `-` is standard input
    #[arg(short, long = "file", required = true, num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
    /// Pause active jobs that are not in the files
    #[arg(long)]
    prune: bool,
    /// Do not ask before pausing
    #[arg(long)]
    yes: bool,
}

/// Which jobs to list.
#[derive(Debug, Args)]
pub struct List {
    /// Only names that hold this, in any case
    name: Option<String>,
    /// Only active or only paused ones
    #[arg(long)]
    status: Option<Status>,
    /// At most so many
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(i64).range(1..=20_000))]
    limit: i64,
    /// Only names after this one: where the page before ended
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Status {
    Active,
    Paused,
}

/// A job.
#[derive(Debug, Args)]
pub struct Named {
    /// The job's name
    name: String,
}

/// What to run.
#[derive(Debug, Args)]
pub struct Trigger {
    /// The job's name
    name: String,
    /// Your own key: the same key never runs twice, it answers with the execution that has it
    #[arg(long)]
    key: Option<String>,
    /// A JSON object; its fields replace those of the job's params
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// Why, for the audit
    #[arg(long)]
    reason: Option<String>,
}

/// What to pause.
#[derive(Debug, Args)]
pub struct Pause {
    /// The job's name
    name: String,
    /// Why, for whoever finds it paused
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
}

/// What to resume.
#[derive(Debug, Args)]
pub struct Resume {
    /// The job's name
    name: String,
    /// Why, for the audit
    #[arg(long)]
    reason: Option<String>,
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: JobsCommand, session: &Session) -> Result<(), Failure> {
    match command {
        JobsCommand::Apply(apply) => apply::run(&apply, session).await,
        JobsCommand::List(list) => browse::list(list, session).await,
        JobsCommand::Show(named) => browse::show(&named.name, session).await,
        JobsCommand::Trigger(trigger) => start::trigger(&trigger, session).await,
        JobsCommand::Pause(pause) => start::pause(&pause, session).await,
        JobsCommand::Resume(resume) => start::resume(&resume, session).await,
    }
}

/// There is no such job; names that are like it are offered.
pub(super) async fn missing(store: &Store, name: &str) -> Failure {
    let similar = jobs::similar_names(store, name).await.unwrap_or_default();
    let hint = if similar.is_empty() {
        "`sexton jobs list` shows those there are".to_owned()
    } else {
        format!("did you mean {}?", similar.join(", "))
    };
    Failure::NotFound(format!("there is no job {name:?}; {hint}"))
}
