//! `make demo`, `make demo-clients`, `make up` and `make down`; what they do is in [`sexton_tests::demo`].

use std::io::{IsTerminal as _, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use sexton_tests::demo::{self, Options, up};

/// Runs Sexton on its own servers and in its own database
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show jobs that fire, fail, are retried, parked and requeued, and programs that are killed
    Run {
        /// Start no workers, which must make the demo fail
        #[arg(long)]
        without_workers: bool,
        /// The limit of the whole demo, such as 90s
        #[arg(long, default_value = "110s", value_parser = duration)]
        limit: Duration,
        /// Stay up at the end, until a line or the end of standard input; as at a terminal
        #[arg(long)]
        stay: bool,
    },
    /// Show services in Python, TypeScript and Java that enqueue, and a worker that runs it
    Clients,
    /// Start the platform and leave it running
    Up(State),
    /// Stop what `up` has started
    Down(State),
    /// Hold the platform that `up` has started
    #[command(hide = true)]
    Keep(State),
}

#[derive(Debug, Args)]
struct State {
    /// Where the state of the running platform is recorded; by default under cargo's target folder
    #[arg(long)]
    state_folder: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Run { without_workers, limit, stay } => {
            let stays = stay || (stdin().is_terminal() && stdout().is_terminal());
            demo::run(Options { has_workers: !without_workers, limit, stays }).await
        }
        Command::Clients => demo::run_clients().await,
        Command::Up(state) => up::up(state.state_folder).await,
        Command::Down(state) => up::down(state.state_folder).await,
        Command::Keep(state) => up::keep(state.state_folder).await,
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    sexton_model::duration::parse(text).map_err(|error| error.to_string())
}
