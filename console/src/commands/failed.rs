//! `sexton failed`: what failed and waits for an operator.

mod deeds;

use clap::{Args, Subcommand};
use sexton_model::state::State;
use sexton_store::executions::ExecutionFilter;

use crate::commands::{executions, reference};
use crate::failure::Failure;
use crate::session::Session;

/// Tasks that failed and wait for an operator.
#[derive(Debug, Subcommand)]
pub enum FailedCommand {
    /// List failed executions, newest first
    List(List),
    /// Show one: its error, its attempts, what was done to it
    Show(executions::Reference),
    /// Run failed executions again, with fresh retries
    Requeue(Requeue),
    /// Give failed executions up; `restore` takes it back
    Discard(Discard),
    /// Take discards back: the executions are failed again
    Restore(Restore),
}

/// Which failed executions to list.
#[derive(Debug, Args)]
pub struct List {
    /// Of this job
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Those that were discarded instead
    #[arg(long)]
    discarded: bool,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1_000))]
    limit: i64,
    /// Only older ones than this: where the page before ended
    #[arg(long, value_name = "ID")]
    before: Option<String>,
}

/// What to run again.
#[derive(Debug, Args)]
pub struct Requeue {
    /// Ids, or their beginnings as far as they are unique
    #[arg(required = true, num_args = 1..=1_000, value_name = "ID")]
    ids: Vec<String>,
    /// Only if this attempt is still the next, as `failed show` and the lists have it; without it, as
    /// the execution is now. Goes with one id
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    attempt: Option<i32>,
    /// Why, for the audit
    #[arg(long)]
    reason: Option<String>,
    /// Do not ask when there are several
    #[arg(long)]
    yes: bool,
}

/// What to give up.
#[derive(Debug, Args)]
pub struct Discard {
    /// Ids, or their beginnings as far as they are unique
    #[arg(required = true, num_args = 1..=1_000, value_name = "ID")]
    ids: Vec<String>,
    /// Why, for whoever asks later
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// What to take back.
#[derive(Debug, Args)]
pub struct Restore {
    /// Ids, or their beginnings as far as they are unique
    #[arg(required = true, num_args = 1..=1_000, value_name = "ID")]
    ids: Vec<String>,
    /// Why, for the audit
    #[arg(long)]
    reason: Option<String>,
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: FailedCommand, session: &Session) -> Result<(), Failure> {
    match command {
        FailedCommand::List(arguments) => list(&arguments, session).await,
        FailedCommand::Show(reference) => executions::show(reference.id(), session).await,
        FailedCommand::Requeue(arguments) => deeds::requeue(&arguments, session).await,
        FailedCommand::Discard(arguments) => deeds::discard(&arguments, session).await,
        FailedCommand::Restore(arguments) => deeds::restore(&arguments, session).await,
    }
}

async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let state = if arguments.discarded { State::Discarded } else { State::Failed };
    let before = match &arguments.before {
        Some(id) => Some(reference::execution(&store, id).await?),
        None => None,
    };
    let filter =
        ExecutionFilter { states: vec![state.as_str().to_owned()], before, ..Default::default() };
    executions::tell_list(&store, filter, arguments.job.as_deref(), arguments.limit, session).await
}
