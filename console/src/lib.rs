//! The operators' console: the command `sexton`.
//!
//! It talks to PostgreSQL, where everything is recorded, and asks RabbitMQ only how full its queues
//! are. It publishes nothing: a requeue leaves the execution's ticket unpublished in its row, and a scheduler's relay
//! publishes it. So a console that is killed in the middle leaves nothing half done. Only `doctor --fix`
//! does more with the broker: it declares what is missing.
//!
//! `sexton_operations` has the operations; here their arguments are parsed and the answers printed.
//!
//! - [`arguments`] is the command line, [`commands`] what each command does, a folder for each noun that has several.
//! - [`session`] is what every command works with; [`actor`] is who runs it.
//! - [`show`] makes tables and JSON of answers; [`exit`] and [`failure`] are how commands end.
//! - [`confirm`] asks before what is hard to take back; [`password`] reads what nobody may see; [`editor`] lets a person change a text.
//! - [`completions`] answers shells that complete a command line.
//! - [`import`] reads the entries of other schedulers, and writes a jobs file of them.
//! - [`mod@bench`] measures on the platform's servers, beside the platform.

pub mod actor;
pub mod arguments;
pub mod bench;
pub mod commands;
pub mod completions;
pub mod confirm;
pub mod editor;
pub mod exit;
pub mod failure;
pub mod import;
mod input_files;
mod muted;
pub mod options;
pub mod password;
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
/// [`Failure`], which `main` reports.
pub async fn run(command: Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::Migrate(arguments) => Box::pin(commands::migrate::run(&arguments, session)).await,
        Command::Audit(command) => commands::audit::run(command, session).await,
        Command::Jobs(command) => commands::jobs::run(command, session).await,
        Command::Executions(command) => commands::executions::run(command, session).await,
        Command::Failed(command) => commands::failed::run(*command, session).await,
        Command::Flows(command) => commands::flows::run(&command, session).await,
        Command::Groups(command) => commands::groups::run(&command, session).await,
        Command::Bulks(command) => commands::bulks::run(&command, session).await,
        Command::Approvals(command) => commands::approvals::run(&command, session).await,
        Command::Unknown(command) => commands::unknown_messages::run(command, session).await,
        Command::Monitors(command) => commands::monitors::run(&command, session).await,
        Command::Incidents(command) => commands::incidents::run(&command, session).await,
        Command::Checks(command) => commands::checks::run(&command, session).await,
        Command::Accounts(command) => commands::accounts::run(&command, session).await,
        Command::Tokens(command) => commands::tokens::run(&command, session).await,
        Command::Serve(_) => Box::pin(commands::serve::run()).await,
        Command::Alerts(command) => commands::alerts::run(&command, session).await,
        Command::Channels(command) => commands::channels::run(&command, session).await,
        Command::Keys(command) => commands::keys::run(&command, session).await,
        Command::Status(arguments) => commands::status::run(&arguments, session).await,
        Command::Enqueue(command) => commands::enqueue::run(*command, session).await,
        Command::Workers(command) => commands::workers::run(&command, session).await,
        Command::Locks(command) => commands::locks::run(&command, session).await,
        Command::Completions(arguments) => commands::completions::run(arguments, session),
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
    completions::answer_shell();
    let arguments = Arguments::read();
    if let Err(wrong) = fault::arm() {
        eprintln!("sexton: {wrong}");
        return Ok(exit::Exit::Usage);
    }
    let session = Session::new(arguments.json);
    let runtime = match arguments.command {
        Command::Serve(_) => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?
        }
        _ => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
    };
    let ended = runtime.block_on(run(arguments.command, &session));
    // A drop would wait for blocking work, such as a lint of up to 20 s, also after a second signal.
    runtime.shutdown_background();
    let Err(failure) = ended else {
        return Ok(exit::Exit::Done);
    };
    if !matches!(failure, Failure::Closed) {
        if session.out.is_json() && !matches!(failure, Failure::Reported { .. }) {
            // A reader that has closed the output needs no document.
            let _ = session.out.document(&failure.document());
        }
        eprintln!("sexton: {}", show::lines(&failure.to_string()));
    }
    Ok(failure.exit())
}
