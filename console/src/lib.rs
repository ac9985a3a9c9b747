//! The operators' console: the command `sexton`.
//!
//! It talks to PostgreSQL, where everything is recorded, and asks RabbitMQ only how full its queues
//! are. It publishes nothing: what an operator puts back is owed by its row, and a scheduler's relay
//! publishes it. So a console that is killed in the middle leaves nothing half done.
//!
//! - [`ledger`] says what became of firings, for commands and for whoever else asks.
//! - [`arguments`] is the command line, [`commands`] what each command does.
//! - [`import`] reads what other schedulers are told, and writes a jobs file of it.
//! - [`show`] makes tables and JSON of answers; [`exit`] and [`failure`] are how commands end.

pub mod actor;
pub mod arguments;
pub mod commands;
pub mod confirm;
pub mod exit;
pub mod failure;
pub mod import;
pub mod ledger;
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
        Command::Migrate => commands::migrate::run(session).await,
        Command::Jobs(command) => commands::jobs::run(command, session).await,
        Command::Executions(command) => commands::executions::run(command, session).await,
        Command::Failed(command) => commands::failed::run(command, session).await,
        Command::Status => commands::status::run(session).await,
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
        if session.out.is_json() && !matches!(failure, Failure::Told { .. }) {
            // Whoever does not read the document any more does not need it either.
            let _ = session.out.document(&failure.document());
        }
        eprintln!("sexton: {}", show::lines(&failure.to_string()));
    }
    Ok(failure.exit())
}
