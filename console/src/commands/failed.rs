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
    /// List failed executions, the latest failure first
    List(Box<list::List>),
    /// Show a failed execution: error, group, attempts, output, message, and operators' actions
    Show(executions::Reference),
    /// Run failed executions again, with full retries
    Requeue(Requeue),
    /// Change the params or pool of a failed execution, and run it again
    Edit(Edit),
    /// Give up failed executions; `restore` takes it back
    Discard(Discard),
    /// Take back discards: the executions are failed again
    Restore(Restore),
}

/// What to run again.
#[derive(Debug, Args)]
pub struct Requeue {
    #[command(flatten)]
    selector: Selector,
    /// Only if this is still the number of the next attempt, as `failed show` prints it; for one id
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    attempt: Option<i32>,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
    /// Requeue this many first, and the others only when all of these have succeeded
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    canary: Option<u32>,
    /// Run this command (by sh) for each execution first. Exit status 0: its effect has happened, and it
    /// succeeds without running; 1: it has not, requeue it; any other: leave it failed
    #[arg(long, value_name = "CMD", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    verify: Option<String>,
    /// Skip the verify tasks of their jobs; the audit log records it
    #[arg(long, conflicts_with = "verify", requires = "reason")]
    no_verify: bool,
    /// Requeue into this pool
    #[arg(long, value_name = "POOL")]
    to_pool: Option<PoolName>,
    /// Use that pool even if no worker consumes from it
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
    /// Reason, recorded in the audit log
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
    /// Restore everything that this bulk has discarded
    #[arg(
        long,
        value_name = "ID",
        conflicts_with_all = ["ids", "all", "FilterOptions", "muted"]
    )]
    bulk: Option<i64>,
    /// Reason, recorded in the audit log
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
