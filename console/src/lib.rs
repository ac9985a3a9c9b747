//! The operators' console: the command `sexton`.
//!
//! It talks to PostgreSQL, where everything is recorded, and asks RabbitMQ only how full its queues
//! are. It publishes nothing: what an operator puts back is owed by its row, and a scheduler's relay
//! publishes it. So a console that is killed in the middle leaves nothing half done. Only the doctor
//! does more with the broker: it declares what is missing, if it is told to.
//!
//! - [`failed`] says what failed and why, for commands and for whoever else asks.
//! - [`editor`] lets a person change a text; [`changes`] says what was changed.
//! - [`ledger`] says what became of firings, for commands and for whoever else asks.
//! - [`mod@bench`] measures on the platform's servers, beside the platform.
//! - [`arguments`] is the command line, [`commands`] what each command does.
//! - [`unknown_messages`] shows and exports messages of the failed queue that no row knows.
//! - [`import`] reads what other schedulers are told, and writes a jobs file of it.
//! - [`verify_command`] asks a command whether a failed task has had its effect.
//! - [`show`] makes tables and JSON of answers; [`exit`] and [`failure`] are how commands end.

pub mod actor;
pub mod arguments;
pub mod bench;
pub mod commands;
pub mod confirm;
pub mod editor;
pub mod exit;
pub mod failure;
pub mod import;
mod input_files;
mod muted;
pub mod session;
pub mod show;

use arguments::{Arguments, Command};
use failure::Failure;
use session::Session;
use sexton_service::fault;

/// Runs one command.
///
/// # Errors
///
/// [`Failure`], for `main` to tell.
pub async fn run(command: Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::Migrate(arguments) => Box::pin(commands::migrate::run(&arguments, session)).await,
        Command::Audit(command) => commands::audit::run(command, session).await,
        Command::Jobs(command) => commands::jobs::run(command, session).await,
        Command::Executions(command) => commands::executions::run(command, session).await,
        Command::Failed(command) => commands::failed::run(*command, session).await,
        Command::Status(arguments) => commands::status::run(&arguments, session).await,
        Command::Doctor(arguments) => commands::doctor::run(&arguments, session).await,
        Command::Bench(command) => commands::bench::run(&command, session).await,
        Command::Cron(command) => commands::cron::run(&command, session).await,
    }
}

/// Reads the command line and runs it.
///
/// # Errors
///
/// Standard output cannot be written, or the runtime cannot start.
pub fn main() -> anyhow::Result<exit::Exit> {
    let arguments = Arguments::read();
    if let Err(wrong) = fault::arm() {
        eprintln!("sexton: {wrong}");
        return Ok(exit::Exit::Usage);
    }
    let session = Session::new(arguments.json);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let Err(failure) = runtime.block_on(run(arguments.command, &session)) else {
        return Ok(exit::Exit::Done);
    };
    if !matches!(failure, Failure::Closed) {
        if session.out.is_json() && !matches!(failure, Failure::Reported { .. }) {
            // Whoever does not read the document any more does not need it either.
            let _ = session.out.document(&failure.document());
        }
        eprintln!("sexton: {}", show::lines(&failure.to_string()));
    }
    Ok(failure.exit())
}
