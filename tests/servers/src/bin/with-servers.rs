//! Runs a command with a PostgreSQL and a RabbitMQ, and stops both when it ends.
//!
//! `DATABASE_URL` and `AMQP_URL` of the command name the servers; where they come from is described in
//! [`sexton_servers`]. The exit status is the command's own, or 128 + n if signal n ended it.
//!
//! With `--migrated`, only PostgreSQL is provided and `DATABASE_URL` names a database created for this
//! command, with the migrations of `./migrations` applied, and dropped afterwards: what checking the
//! queries against the schema needs.
//!
//! SIGTERM, SIGINT and SIGHUP go on to the command. The servers outlive it by design, and this process
//! never: after a SIGKILL their guards end them.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::str::FromStr as _;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use sexton_servers::{Needed, provide, provide_durable};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, migrate::Migrator};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::timeout;

/// Creating and migrating a database takes a second.
const MIGRATE_DEADLINE: Duration = Duration::from_mins(1);

/// Run a command with PostgreSQL and RabbitMQ.
#[derive(Debug, Parser)]
struct Arguments {
    /// Provide PostgreSQL alone and create a migrated database for the command
    #[arg(long)]
    migrated: bool,

    /// Start a PostgreSQL that keeps what is committed through a loss of power, as for measurements
    #[arg(long)]
    durable: bool,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

#[tokio::main]
async fn main() -> ExitCode {
    // One line of causes; a backtrace of this program would not help the person who runs the tests.
    serve(&Arguments::parse()).await.unwrap_or_else(|error| {
        eprintln!("with-servers: {error:#}");
        ExitCode::FAILURE
    })
}

/// Provides the servers, runs the command with them, and stops them.
async fn serve(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut stop_signal = StopSignal::listen()?;
    let needed = if arguments.migrated { Needed::Postgres } else { Needed::Both };
    let providing = async {
        if arguments.durable { provide_durable(needed).await } else { provide(needed).await }
    };
    let servers = tokio::select! {
        servers = providing => servers?,
        // What was started so far is dropped here, and its guards stop it.
        signal = stop_signal.next() => return Ok(exit_code_of_signal(signal)),
    };
    eprintln!("servers: {}", servers.description());

    let outcome = if arguments.migrated {
        run_migrated(&servers.database_url, &arguments.command, &mut stop_signal).await
    } else {
        let variables = [
            ("DATABASE_URL", servers.database_url.clone()),
            ("AMQP_URL", servers.amqp_url.clone()),
        ];
        run(&arguments.command, &variables, &mut stop_signal).await
    };
    servers.shutdown().await?;
    Ok(exit_code(outcome?))
}

/// Runs the command with a database of its own, which is dropped however the command ends.
async fn run_migrated(
    server_url: &str,
    command: &[OsString],
    stop_signal: &mut StopSignal,
) -> anyhow::Result<ExitStatus> {
    let name = format!("sexton_check_{}", uuid::Uuid::new_v4().simple());
    let server = PgConnectOptions::from_str(server_url).context("DATABASE_URL")?;
    let database = server.clone().database(&name);
    execute(&server, format!("CREATE DATABASE {name}")).await?;
    let outcome = async {
        timeout(MIGRATE_DEADLINE, migrate(&database))
            .await
            .context("migrations took too long")??;
        let variables = [("DATABASE_URL", database.to_url_lossy().to_string())];
        run(command, &variables, stop_signal).await
    };
    let outcome = outcome.await;
    execute(&server, format!("DROP DATABASE {name} WITH (FORCE)")).await?;
    outcome
}

async fn execute(server: &PgConnectOptions, statement: String) -> anyhow::Result<()> {
    let work = async {
        let mut connection = PgConnection::connect_with(server).await?;
        sqlx::raw_sql(AssertSqlSafe(statement.clone())).execute(&mut connection).await?;
        connection.close().await
    };
    timeout(MIGRATE_DEADLINE, work).await?.with_context(|| statement.clone())
}

async fn migrate(database: &PgConnectOptions) -> anyhow::Result<()> {
    let mut migrator = Migrator::new(Path::new("migrations")).await.context("read ./migrations")?;
    migrator.create_schema("sexton");
    migrator.dangerous_set_table_name("sexton._sqlx_migrations");
    let mut connection = PgConnection::connect_with(database).await?;
    migrator.run(&mut connection).await.context("apply ./migrations")?;
    Ok(connection.close().await?)
}

/// Runs the command to its end, passing on the signals that ask for it.
async fn run(
    command: &[OsString],
    variables: &[(&str, String)],
    stop_signal: &mut StopSignal,
) -> anyhow::Result<ExitStatus> {
    // Ctrl-C reaches every process of the terminal's foreground group by itself. Without a terminal
    // the command gets a group of its own, so that a signal meant for it reaches what it started too:
    // cargo, once it receives the signal, would otherwise leave the tests running.
    let in_terminal = std::io::stdin().is_terminal();
    let mut process = std::process::Command::new(&command[0]);
    process.args(&command[1..]).envs(variables.iter().map(|(name, value)| (name, value)));
    if !in_terminal {
        process.process_group(0);
    }
    let mut child =
        Command::from(process).spawn().with_context(|| format!("failed to run {command:?}"))?;
    let mut is_first = true;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(status?),
            signal = stop_signal.next() => {
                let has_it_already = in_terminal && is_first && signal == Signal::INT;
                if !has_it_already {
                    forward_signal(&child, signal, in_terminal);
                }
                is_first = false;
            }
        }
    }
}

fn forward_signal(child: &Child, signal: Signal, in_terminal: bool) {
    let Some(pid) = child.id().and_then(|id| Pid::from_raw(id as i32)) else { return };
    let send = if in_terminal { kill_process } else { kill_process_group };
    // It may have ended meanwhile; its status says the rest.
    send(pid, signal).ok();
}

/// The signals that end this process.
struct StopSignal {
    interrupt: Signals,
    terminate: Signals,
    hangup: Signals,
}

impl StopSignal {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.hangup.recv() => Signal::HUP,
        }
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let of_signal = || status.signal().map_or(1, |signal| 128 + signal);
    ExitCode::from(status.code().unwrap_or_else(of_signal) as u8)
}

fn exit_code_of_signal(signal: Signal) -> ExitCode {
    ExitCode::from((128 + signal.as_raw()) as u8)
}
