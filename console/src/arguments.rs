//! The command line.

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use sexton_service::settings::{Program, help};

use crate::commands::audit::AuditCommand;
use crate::commands::bench::BenchCommand;
use crate::commands::bulks::BulksCommand;
use crate::commands::cron::CronCommand;
use crate::commands::doctor::Doctor;
use crate::commands::executions::ExecutionsCommand;
use crate::commands::failed::FailedCommand;
use crate::commands::groups::GroupsCommand;
use crate::commands::jobs::JobsCommand;
use crate::commands::migrate::Migrate;
use crate::commands::status::Status;
use crate::commands::unknown_messages::UnknownCommand;
use crate::exit::Exit;

/// Shows and steers the platform: jobs, executions, failed tasks.
#[derive(Debug, Parser)]
#[command(name = "sexton", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Arguments {
    /// Answer with one JSON document on standard output, errors too
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Bring the database's schema up to this program's version
    Migrate(Migrate),
    /// Definitions: what runs, when
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// What ran, runs and will run
    #[command(subcommand, visible_alias = "exec")]
    Executions(ExecutionsCommand),
    /// Tasks that failed and wait for an operator
    #[command(subcommand)]
    Failed(Box<FailedCommand>),
    /// Groups of what failed alike
    #[command(subcommand)]
    Groups(GroupsCommand),
    /// What was asked for of many executions at once
    #[command(subcommand)]
    Bulks(BulksCommand),
    /// Messages of the failed queue that no row knows
    #[command(subcommand)]
    Unknown(UnknownCommand),
    /// What operators did: who, when, from where, why
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Instances, queues, what waits and what failed
    Status(Status),
    /// What is wrong with the platform, what shows it, and what to do
    Doctor(Doctor),
    /// How fast the platform is on its servers: measured beside it, with programs of its own
    Bench(BenchCommand),
    /// Try and check cron expressions; needs no server
    #[command(subcommand)]
    Cron(CronCommand),
}

impl Arguments {
    /// Reads the process's arguments; answers `--help`, `--version` and mistakes itself.
    pub fn read() -> Self {
        let after = format!("{}\n{}", Exit::help(), environment());
        let matches = Self::command().after_help(Exit::help()).after_long_help(after).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// The settings' help without its title, which the command line's own help has.
fn environment() -> String {
    let text = help(Program::Console);
    text.find("Environment:").map_or(text.clone(), |at| text[at..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }
}
