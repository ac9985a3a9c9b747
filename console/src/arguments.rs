//! The command line.

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use sexton_service::settings::{Program, help};

use crate::commands::accounts::AccountsCommand;
use crate::commands::alerts::AlertsCommand;
use crate::commands::approvals::ApprovalsCommand;
use crate::commands::audit::AuditCommand;
use crate::commands::bench::BenchCommand;
use crate::commands::bulks::BulksCommand;
use crate::commands::channels::ChannelsCommand;
use crate::commands::checks::ChecksCommand;
use crate::commands::completions::Completions;
use crate::commands::cron::CronCommand;
use crate::commands::doctor::Doctor;
use crate::commands::enqueue::EnqueueCommand;
use crate::commands::executions::ExecutionsCommand;
use crate::commands::failed::FailedCommand;
use crate::commands::flows::FlowsCommand;
use crate::commands::groups::GroupsCommand;
use crate::commands::incidents::IncidentsCommand;
use crate::commands::jobs::JobsCommand;
use crate::commands::keys::KeysCommand;
use crate::commands::locks::LocksCommand;
use crate::commands::migrate::Migrate;
use crate::commands::monitors::MonitorsCommand;
use crate::commands::serve::Serve;
use crate::commands::status::Status;
use crate::commands::tokens::TokensCommand;
use crate::commands::unknown_messages::UnknownCommand;
use crate::commands::workers::WorkersCommand;
use crate::exit::Exit;

/// Manage jobs and their executions
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
    /// Manage job definitions
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// Enqueue executions of a job
    Enqueue(Box<EnqueueCommand>),
    /// Inspect and cancel executions
    #[command(subcommand, visible_alias = "exec")]
    Executions(ExecutionsCommand),
    /// Inspect and cancel flows of executions that depend on one another
    #[command(subcommand)]
    Flows(FlowsCommand),
    /// Find, requeue and discard failed executions
    #[command(subcommand)]
    Failed(Box<FailedCommand>),
    /// Group failures by cause
    #[command(subcommand)]
    Groups(GroupsCommand),
    /// Follow and stop bulk operations
    #[command(subcommand)]
    Bulks(BulksCommand),
    /// Approve or reject what others request
    #[command(subcommand)]
    Approvals(ApprovalsCommand),
    /// Inspect and remove unknown messages in the failed queue
    #[command(subcommand)]
    Unknown(UnknownCommand),
    /// List monitors of jobs: what is expected of them, and what is missed
    #[command(subcommand)]
    Monitors(MonitorsCommand),
    /// Manage checks: jobs that run elsewhere and report by pings
    #[command(subcommand)]
    Checks(ChecksCommand),
    /// Respond to incidents: acknowledge, silence, resolve
    #[command(subcommand)]
    Incidents(IncidentsCommand),
    /// Search and export the record of operators' actions
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Manage channels and routes of alerts, and their notifications
    #[command(subcommand)]
    Alerts(AlertsCommand),
    /// List and test the channels that notifications go to
    #[command(subcommand)]
    Channels(ChannelsCommand),
    /// Manage keys of advisory locks: ranges of services, formulas of other systems
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Manage accounts: who may log in, and do what
    #[command(subcommand)]
    Accounts(AccountsCommand),
    /// Manage tokens of the API: who may do what
    #[command(subcommand)]
    Tokens(TokensCommand),
    /// Show the platform's state: servers, pools, processes, warnings
    Status(Status),
    /// Show workers and what they run
    #[command(subcommand)]
    Workers(WorkersCommand),
    /// List locks: who holds or waits for which, and since when
    Locks(LocksCommand),
    /// Check the platform and suggest remedies
    Doctor(Doctor),
    /// Try and check cron expressions
    #[command(subcommand)]
    Cron(CronCommand),
    /// Create or upgrade the database schema
    Migrate(Migrate),
    /// Serve the console and the API, and accept pings
    Serve(Serve),
    /// Measure the platform's throughput and latency
    Bench(BenchCommand),
    /// Print a script for completion in bash, zsh or fish
    Completions(Completions),
}

impl Arguments {
    /// Reads the process's arguments; answers `--help`, `--version` and mistakes itself.
    pub fn read() -> Self {
        let matches = Self::documented().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Returns the command line with its settings and exit statuses, as `--help` prints them.
    fn documented() -> clap::Command {
        let after = format!("{}\n{}", Exit::help(), environment(Program::Console));
        Self::command()
            .after_help(Exit::help())
            .after_long_help(after)
            .mut_subcommand("serve", |serve| serve.after_long_help(environment(Program::Server)))
    }
}

/// The settings' help without its title, which the command line's own help has.
fn environment(program: Program) -> String {
    let text = help(program);
    text.find("Environment:").map_or(text.clone(), |at| text[at..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::documented().debug_assert();
    }

    #[test]
    fn the_help_of_serve_lists_the_settings_that_it_reads_and_no_others() {
        let mut command = Arguments::documented();
        let serve = command.find_subcommand_mut("serve").unwrap();
        let text = serve.render_long_help().to_string();
        let listed = |name: &str| text.contains(&format!("\n  {name}\n"));
        for name in ["DATABASE_URL", "SERVE_ADDR", "PINGS_PER_MINUTE", "HEALTH_ADDR", "RUST_LOG"] {
            assert!(listed(name), "{name} is missing in {text}");
        }
        for name in ["DATABASE_DIRECT_URL", "AMQP_URL", "FAILED_WARN_COUNT", "WORKER_SLOTS"] {
            assert!(!listed(name), "{name} is in {text}");
        }
    }
}
