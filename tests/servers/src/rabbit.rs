//! A private RabbitMQ that a test may kill, freeze and wipe.
//!
//! Node name, cookie, port mapper and ports are its own, and everything listens on the loopback
//! address only, so it neither meets nor disturbs another RabbitMQ on the machine.

use std::ffi::OsString;
use std::time::Duration;

use rustix::process::Signal;
use uuid::Uuid;

use super::error::ServersError;
use super::folder::{Ending, Folder};
use super::instance::{Instance, Launch, Programs};
use super::programs::RabbitPrograms;
use super::runner::Runner;
use super::source::{self, Source};
use super::{ports, ready, versions};

const NAME: &str = "RabbitMQ";

/// Four seconds on an idle machine with 3.10, fourteen with 4.0; the rest is for a busy machine.
const READY_DEADLINE: Duration = Duration::from_mins(5);

/// A virtual machine starts for each command.
const CONTROL_DEADLINE: Duration = Duration::from_mins(2);

/// How many times other ports are tried.
const PORT_TRIES: usize = 3;

/// The virtual machine's arguments: distribution on the loopback address only, no starting of a port
/// mapper that would outlive it, and no spinning while idle, which costs tests on few cores dearly.
const ERLANG_ARGUMENTS: &str = "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1} \
                                +sbwt none +sbwtdcpu none +sbwtdio none";

/// The options of a private server.
#[derive(Debug, Clone, Default)]
pub struct RabbitOptions {
    /// Further lines of `rabbitmq.conf`, for example `consumer_timeout = 10000` (milliseconds).
    pub configuration: Vec<String>,
}

/// A RabbitMQ on free loopback ports, ended when this value is dropped or its process is gone.
///
/// Dropping returns at once and the server ends in the background; [`RabbitServer::end`] waits.
#[derive(Debug)]
pub struct RabbitServer {
    url: String,
    version: String,
    runner: Runner,
    /// `rabbitmqctl`, without arguments; none for a container.
    control: Option<Launch>,
}

impl RabbitServer {
    /// Starts an empty server and waits until it accepts connections.
    ///
    /// # Errors
    ///
    /// [`ServersError::NothingToStart`] where no server can be had; [`ServersError::NotReady`] with
    /// the end of its log. Nothing is left running then.
    pub async fn start_private(options: RabbitOptions) -> Result<Self, ServersError> {
        let source = source::rabbit().await?;
        for _ in 1..PORT_TRIES {
            match Self::start_from(source.clone(), &options).await {
                Err(error) if error.is_port_taken() => {}
                answer => return answer,
            }
        }
        Self::start_from(source, &options).await
    }

    async fn start_from(
        source: Source<RabbitPrograms>,
        options: &RabbitOptions,
    ) -> Result<Self, ServersError> {
        let [port, epmd_port, distribution_port] = ports::free()?;
        let password = Uuid::new_v4().simple().to_string();
        let url = format!("amqp://sexton:{password}@127.0.0.1:{port}/%2f");
        let mut lines = vec!["default_user = sexton".into(), format!("default_pass = {password}")];
        lines.extend(options.configuration.iter().cloned());
        let mut control = None;
        let runner = match source {
            Source::Programs(programs) => {
                lines.push(format!("listeners.tcp.1 = 127.0.0.1:{port}"));
                let ending = Ending { signal: "KILL", removal: &[] };
                let folder = Folder::create("rabbitmq", programs.place.clone(), ending)?;
                folder.write("rabbitmq.conf", &(lines.join("\n") + "\n"))?;
                folder.write("plugins", "[].\n")?;
                let server = rabbitmq_server(&programs, &folder, epmd_port, distribution_port);
                control = Some(rabbitmqctl(&programs, &server));
                let programs = Programs {
                    create: None,
                    serve: vec![epmd(&programs, epmd_port), server],
                    stop_signal: Signal::TERM,
                };
                Runner::Programs(Instance::new(folder, programs))
            }
            Source::Compose(compose) => {
                let variables = vec![("SERVER_PORT", port.to_string().into())];
                let project = compose.project("rabbitmq", variables)?;
                // Clients of a container do not come from the loopback address.
                lines.push("loopback_users = none".into());
                project.write_shared("rabbitmq.conf", &(lines.join("\n") + "\n"))?;
                Runner::Container(project)
            }
        };
        runner.create().await?;
        let mut server = Self { url, version: String::new(), runner, control };
        server.start().await?;
        server.version = versions::rabbit(&server.url).await?;
        Ok(server)
    }

    /// The administrator's URL of the virtual host `/`. It bears a password and stays the same over
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

    /// Runs `rabbitmqctl` with these arguments.
    ///
    /// # Errors
    ///
    /// [`ServersError::Program`] when it fails, and for a server in a container.
    pub async fn control(&self, arguments: &[&str]) -> Result<(), ServersError> {
        let (Some(control), Runner::Programs(instance)) = (&self.control, &self.runner) else {
            let reason = "the server is in a container".to_owned();
            return Err(ServersError::Program { action: "run rabbitmqctl".to_owned(), reason });
        };
        let arguments = arguments.iter().map(Into::into).collect();
        instance.run(&Launch { arguments, ..control.clone() }, CONTROL_DEADLINE).await
    }

    /// Stops the server in good order, with a notice to its clients.
    pub async fn stop(&mut self) -> Result<(), ServersError> {
        self.runner.stop().await
    }

    /// SIGKILLs every process of the server, as a power cut would.
    ///
    /// RabbitMQ (3.10 and 4.0 alike) writes its list of quorum queues to disk every half second. A
    /// queue declared less than that before the kill still exists afterwards, but every operation
    /// on it times out: seen with kills up to 300 ms after the declaration, not with 1 s. A test
    /// that declares and kills at once would meet that instead of its own subject.
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

    /// Kills the server, deletes its queues, exchanges and messages, and starts it empty on the same
    /// port.
    pub async fn wipe(&mut self) -> Result<(), ServersError> {
        self.runner.renew().await?;
        self.start().await
    }

    /// Ends the server for good, deletes its data, and waits for both.
    pub async fn end(self) -> Result<(), ServersError> {
        self.runner.end().await
    }

    async fn start(&mut self) -> Result<(), ServersError> {
        let connect = async || ready::rabbit(&self.url).await;
        self.runner.start(NAME, READY_DEADLINE, connect).await
    }
}

/// The tool beside the server's script, in the server's own environment.
fn rabbitmqctl(programs: &RabbitPrograms, server: &Launch) -> Launch {
    Launch { program: programs.server.with_file_name("rabbitmqctl"), ..server.clone() }
}

/// The port mapper, in the foreground and as a child. The server itself would start one as a
/// daemon, which nobody ends.
fn epmd(programs: &RabbitPrograms, port: u16) -> Launch {
    Launch {
        program: programs.epmd.clone(),
        arguments: ["-port", &port.to_string(), "-address", "127.0.0.1"].map(Into::into).into(),
        environment: Vec::new(),
        port: Some(port),
    }
}

fn rabbitmq_server(
    programs: &RabbitPrograms,
    folder: &Folder,
    epmd_port: u16,
    distribution_port: u16,
) -> Launch {
    let run = folder.seen(&folder.run());
    let environment: Vec<(&'static str, OsString)> = vec![
        ("ERL_EPMD_PORT", epmd_port.to_string().into()),
        ("ERL_EPMD_ADDRESS", "127.0.0.1".into()),
        // A killed virtual machine need not describe itself on a gigabyte of disk.
        ("ERL_CRASH_DUMP_BYTES", "0".into()),
        ("RABBITMQ_NODENAME", format!("{}@localhost", folder.name()).into()),
        ("RABBITMQ_DIST_PORT", distribution_port.to_string().into()),
        ("RABBITMQ_MNESIA_BASE", run.join("data").into()),
        ("RABBITMQ_PID_FILE", run.join("pid").into()),
        ("RABBITMQ_LOG_BASE", run.into()),
        // To standard output, and so into the folder's one log.
        ("RABBITMQ_LOGS", "-".into()),
        ("RABBITMQ_CONFIG_FILE", folder.seen(&folder.file("rabbitmq.conf")).into()),
        ("RABBITMQ_ENABLED_PLUGINS_FILE", folder.seen(&folder.file("plugins")).into()),
        // The machine's settings are for the machine's server.
        ("RABBITMQ_CONF_ENV_FILE", "/dev/null".into()),
        ("RABBITMQ_ADVANCED_CONFIG_FILE", folder.seen(&folder.file("no-advanced.config")).into()),
        ("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", ERLANG_ARGUMENTS.into()),
    ];
    Launch { program: programs.server.clone(), arguments: Vec::new(), environment, port: None }
}
