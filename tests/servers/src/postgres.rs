//! A private PostgreSQL that a test may kill, freeze and wipe.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use uuid::Uuid;

use super::clock::Clock;
use super::error::ServersError;
use super::folder::{Ending, Folder};
use super::instance::{Instance, Launch, Programs};
use super::programs::PostgresPrograms;
use super::runner::Runner;
use super::source::{self, Source};
use super::{ports, ready, versions};

const NAME: &str = "PostgreSQL";

/// Two seconds on an idle machine; the rest is for recovery after a kill and a busy machine.
const READY_DEADLINE: Duration = Duration::from_mins(1);

/// How often another port is tried.
const PORT_TRIES: usize = 3;

/// Whether committed data survive a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// `fsync` stays on: for servers that are killed, and for measurements.
    #[default]
    Full,
    /// `fsync` off: saves disk writes where no power is cut. `synchronous_commit` stays on, so the
    /// order of events is the real one.
    Fast,
}

/// The options of a private server.
#[derive(Debug, Clone, Copy)]
pub struct PostgresOptions {
    /// Whether committed data survive a kill.
    pub durability: Durability,
    /// The most connections; tests run in parallel, each with its own pools.
    pub max_connections: u16,
    /// Whether its clock can be set: [`PostgresServer::set_clock`].
    pub own_clock: bool,
    /// The most transactions that are prepared at once; PostgreSQL's own default is none.
    pub max_prepared_transactions: u16,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            max_connections: 300,
            own_clock: false,
            max_prepared_transactions: 0,
        }
    }
}

/// A PostgreSQL on a free loopback port, ended when this value is dropped or its process is gone.
///
/// Dropping returns at once and the server ends in the background; [`PostgresServer::end`] waits.
#[derive(Debug)]
pub struct PostgresServer {
    url: String,
    version: String,
    runner: Runner,
    clock: Option<Clock>,
}

impl PostgresServer {
    /// Starts an empty server and waits until it accepts connections.
    ///
    /// # Errors
    ///
    /// [`ServersError::NothingToStart`] where no server can be had; [`ServersError::NotReady`] with
    /// the end of its log. Nothing is left running then.
    pub async fn start_private(options: PostgresOptions) -> Result<Self, ServersError> {
        let source = source::postgres().await?;
        for _ in 1..PORT_TRIES {
            match Self::start_from(source.clone(), options).await {
                Err(error) if error.is_port_taken() => {}
                answer => return answer,
            }
        }
        Self::start_from(source, options).await
    }

    async fn start_from(
        source: Source<PostgresPrograms>,
        options: PostgresOptions,
    ) -> Result<Self, ServersError> {
        let [port] = ports::free()?;
        // Other users of this machine can reach the port too, so the superuser needs a password.
        let password = Uuid::new_v4().simple().to_string();
        let url = format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres");
        let mut clock = None;
        let runner = match source {
            Source::Programs(programs) => {
                let ending = Ending { signal: "QUIT", removal: &[] };
                let folder = Folder::create("postgres", programs.place.clone(), ending)?;
                let password = folder.write("password", &password)?;
                if options.own_clock {
                    clock = Some(Clock::create(&folder).await?);
                }
                let mut serve = postgres(&programs, &folder, port, options);
                serve.environment = clock.iter().flat_map(Clock::environment).collect();
                let programs = Programs {
                    create: Some(initdb(&programs, &folder, &password)),
                    serve: vec![serve],
                    // PostgreSQL's "fast" stop: it does not wait for clients to leave.
                    stop_signal: Signal::INT,
                };
                Runner::Programs(Instance::new(folder, programs))
            }
            Source::Compose(_) if options.own_clock => return Err(Clock::none_in_a_container()),
            Source::Compose(compose) => {
                let fsync = if options.durability == Durability::Full { "on" } else { "off" };
                let variables = vec![
                    ("SERVER_PORT", port.to_string().into()),
                    ("SERVER_PASSWORD", password.into()),
                    ("SERVER_FSYNC", fsync.into()),
                    ("SERVER_MAX_CONNECTIONS", options.max_connections.to_string().into()),
                    (
                        "SERVER_MAX_PREPARED_TRANSACTIONS",
                        options.max_prepared_transactions.to_string().into(),
                    ),
                ];
                Runner::Container(compose.project("postgres", variables)?)
            }
        };
        runner.create().await?;
        let mut server = Self { url, version: String::new(), runner, clock };
        server.start().await?;
        server.version = versions::postgres(&server.url).await?;
        Ok(server)
    }

    /// The superuser's URL of the database `postgres`. It bears a password and stays the same over
    /// restarts.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The server's version, as it says itself.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The ids of the server's processes on this machine: none for a container.
    pub fn process_ids(&self) -> Vec<i32> {
        self.runner.process_ids()
    }

    /// Stops the server in good order; clients are disconnected.
    pub async fn stop(&mut self) -> Result<(), ServersError> {
        self.runner.stop().await
    }

    /// SIGKILLs every process of the server, as a power cut would.
    pub async fn kill(&mut self) -> Result<(), ServersError> {
        self.runner.kill().await
    }

    /// Starts the server again after [`stop`](Self::stop) or [`kill`](Self::kill), stopping it first
    /// if it runs, with the same port and data, and waits until it accepts connections.
    pub async fn restart(&mut self) -> Result<(), ServersError> {
        self.stop().await?;
        self.start().await
    }

    /// Freezes every process of the server (SIGSTOP): connections stay open without an answer.
    pub async fn pause(&self) -> Result<(), ServersError> {
        self.runner.pause().await
    }

    /// Thaws a frozen server.
    pub async fn resume(&self) -> Result<(), ServersError> {
        self.runner.resume().await
    }

    /// Kills the server, deletes all its data, and starts it empty on the same port.
    pub async fn wipe(&mut self) -> Result<(), ServersError> {
        self.runner.renew().await?;
        self.start().await
    }

    /// Stops the server, keeps a copy of its data for [`restore`](Self::restore), and starts it again. Once.
    ///
    /// # Errors
    ///
    /// It is a container.
    pub async fn back_up(&mut self) -> Result<(), ServersError> {
        self.stop().await?;
        self.runner.back_up()?;
        self.start().await
    }

    /// Kills the server, if it runs, and starts the one of the copy in its place, on the same port: what was written
    /// since is lost.
    ///
    /// # Errors
    ///
    /// There is no copy.
    pub async fn restore(&mut self) -> Result<(), ServersError> {
        self.runner.restore().await?;
        self.start().await
    }

    /// Sets the clock of all the server's processes this many seconds ahead of this machine's
    /// (negative: behind); how fast time passes, and what timers measure, does not change.
    ///
    /// # Errors
    ///
    /// It was not started with a clock that can be set, or the clock's file cannot be written.
    pub fn set_clock(&self, seconds: i64) -> Result<(), ServersError> {
        match &self.clock {
            Some(clock) => clock.set(seconds),
            None => Err(Clock::not_its_own()),
        }
    }

    /// Ends the server for good, deletes its data, and waits for both.
    pub async fn end(self) -> Result<(), ServersError> {
        self.runner.end().await
    }

    async fn start(&mut self) -> Result<(), ServersError> {
        let connect = async || ready::postgres(&self.url).await;
        self.runner.start(NAME, READY_DEADLINE, connect).await
    }
}

fn initdb(programs: &PostgresPrograms, folder: &Folder, password: &Path) -> Launch {
    let mut arguments: Vec<OsString> = vec!["-D".into(), folder.seen(&folder.run()).into()];
    // `md5` and not scram, whose four thousand rounds for each connection would take most of a short test's time.
    let settings = ["-U", "postgres", "-A", "md5", "-E", "UTF8", "--locale=C", "--no-sync"];
    arguments.extend(settings.map(OsString::from));
    arguments.extend(["--pwfile".into(), folder.seen(password).into()]);
    Launch { program: programs.initdb.clone(), arguments, environment: Vec::new(), port: None }
}

fn postgres(
    programs: &PostgresPrograms,
    folder: &Folder,
    port: u16,
    options: PostgresOptions,
) -> Launch {
    let mut arguments: Vec<OsString> = vec!["-D".into(), folder.seen(&folder.run()).into()];
    // No socket file: its folder may belong to another user, and its path has a short limit.
    arguments.extend(["-h", "127.0.0.1", "-k", ""].map(OsString::from));
    arguments.extend(["-p".into(), port.to_string().into()]);
    let mut settings = vec![
        format!("max_connections={}", options.max_connections),
        format!("max_prepared_transactions={}", options.max_prepared_transactions),
    ];
    if options.durability == Durability::Fast {
        settings.push("fsync=off".into());
        // In its folder: a server that is killed would leave shared memory of the machine behind.
        settings.push("dynamic_shared_memory_type=mmap".into());
    }
    for setting in settings {
        arguments.extend(["-c".into(), setting.into()]);
    }
    Launch { program: programs.postgres.clone(), arguments, environment: Vec::new(), port: None }
}
