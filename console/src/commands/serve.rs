//! `sexton serve`: the console, the API, and pings of foreign jobs.

use clap::Args;
use sexton_server::program::run_server;
use sexton_service::lifecycle::{ExitOutcome, Signals};
use sexton_service::settings::{ServerSettings, process_environment};
use sexton_service::telemetry;

use crate::failure::Failure;

/// Serves until SIGTERM or SIGINT. Settings are environment variables.
#[derive(Debug, Args)]
pub struct Serve {}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`]: settings are wrong, an address cannot be bound, or a part broke.
pub async fn run() -> Result<(), Failure> {
    let settings = ServerSettings::from_env(process_environment())?;
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(format!("{error:#}"));
    let signals = Signals::install().map_err(|error| failed(&error))?;
    telemetry::init(&settings.telemetry).map_err(|error| failed(&error))?;
    match run_server(settings, signals).await.map_err(|error| failed(&error))? {
        ExitOutcome::Cleanly => Ok(()),
        ExitOutcome::Broken => {
            Err(Failure::Failed("it did not end in order; the log says why".to_owned()))
        }
    }
}
