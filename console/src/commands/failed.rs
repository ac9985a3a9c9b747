//! `sexton failed`: what failed and waits for an operator.

mod actions;
mod edit;
mod list;
mod selector;
mod show;

use clap::{Args, Subcommand};
use sexton_model::pool::PoolName;

use crate::commands::bulks::BulkOptions;
use crate::commands::executions;
use crate::failure::Failure;
use crate::session::Session;
pub use edit::Edit;
pub use selector::Selector;

/// Tasks that failed and wait for an operator.
#[derive(Debug, Subcommand)]
pub enum FailedCommand {
    /// List failed executions, newest failure first
    List(Box<list::List>),
    /// Show one: its error and group, its attempts and output, its message, what was done to it
    Show(executions::Reference),
    /// Run failed executions again, with fresh retries
    Requeue(Requeue),
    /// Change a failed execution's params or pool, and run it again
    Edit(Edit),
    /// Give failed executions up; `restore` takes it back
    Discard(Discard),
    /// Take discards back: the executions are failed again
    Restore(Restore),
}

/// What to run again.
#[derive(Debug, Args)]
pub struct Requeue {
    #[command(flatten)]
    selector: Selector,
    /// Only if this attempt is still the next, as `failed show` says; without it, as the execution is
    /// now. Goes with one id
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    attempt: Option<i32>,
    /// Why, for the audit
    #[arg(long)]
    reason: Option<String>,
    /// So many first, and the rest only when all of these have ended well
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    canary: Option<u32>,
    /// Ask this command (by sh) of each first whether its effect has happened: exit status 0 says yes, and
    /// it ends well without running; 1 says no; anything else leaves it as it is
    #[arg(long, value_name = "CMD", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    verify: Option<String>,
    /// Do not ask the verify task of their jobs; the audit says so, and why
    #[arg(long, conflicts_with = "verify", requires = "reason")]
    no_verify: bool,
    /// Send them to this pool
    #[arg(long, value_name = "POOL")]
    to_pool: Option<PoolName>,
    /// Send them there though no worker consumes from it
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    options: BulkOptions,
}

/// What to give up.
#[derive(Debug, Args)]
pub struct Discard {
    #[command(flatten)]
    selector: Selector,
    /// Reason, for the audit
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
    #[command(flatten)]
    options: BulkOptions,
}

/// What to take back.
#[derive(Debug, Args)]
pub struct Restore {
    #[command(flatten)]
    selector: Selector,
    /// All that this bulk has discarded
    #[arg(long, value_name = "ID", conflicts_with_all = ["ids", "all", "FilterArguments"])]
    bulk: Option<i64>,
    /// Why, for the audit
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    options: BulkOptions,
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: FailedCommand, session: &Session) -> Result<(), Failure> {
    match command {
        FailedCommand::List(arguments) => list::run(&arguments, session).await,
        FailedCommand::Show(reference) => show::run(reference.id(), session).await,
        FailedCommand::Requeue(arguments) => actions::requeue(&arguments, session).await,
        FailedCommand::Edit(arguments) => edit::run(&arguments, session).await,
        FailedCommand::Discard(arguments) => actions::discard(&arguments, session).await,
        FailedCommand::Restore(arguments) => actions::restore(&arguments, session).await,
    }
}
