//! A private server made of installed programs: started, stopped, killed, paused, wiped.
//!
//! Knows processes and folders, not what PostgreSQL or RabbitMQ need; that is in their own files.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::error::ServersError;
use super::folder::Folder;
use super::{processes, ready};

/// How long creating the data may take: a second on an idle machine.
const CREATE_DEADLINE: Duration = Duration::from_mins(1);

/// How long a helper may take to listen: milliseconds on an idle machine.
const LISTEN_DEADLINE: Duration = Duration::from_secs(15);

/// How long an orderly stop may take before the rest is killed.
const STOP_DEADLINE: Duration = Duration::from_secs(30);

/// The time between two checks of a process that is ending.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// One program of a server.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(&'static str, OsString)>,
    /// The port on which it listens, if the next program must wait for that.
    pub(super) port: Option<u16>,
}

/// The programs of a server.
#[derive(Debug)]
pub(super) struct Programs {
    /// Run to its end in an empty run folder: creates the data.
    pub(super) create: Option<Launch>,
    /// Started in this order and kept running. The last one is the main one.
    pub(super) serve: Vec<Launch>,
    /// The signal that stops the main program in good order.
    pub(super) stop_signal: Signal,
}

/// A private server made of processes in a folder.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) folder: Folder,
    programs: Programs,
    children: Vec<Child>,
}

impl Launch {
    /// The command, in its folder, with nothing of this process's environment but a search path:
    /// `PGPORT` or `RABBITMQ_NODENAME` of somebody else's server must not reach ours.
    fn command(&self, folder: &Folder) -> Result<Command, ServersError> {
        let log = folder.log()?;
        let stdout = log.try_clone().map_err(ServersError::file("open", &self.program))?;
        let mut command = folder.command(&self.program);
        command
            .args(&self.arguments)
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", folder.seen(&folder.run()))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(log)
            // Ctrl-C is for the tests; the servers go when those have ended.
            .process_group(0);
        Ok(command)
    }

    fn spawn(&self, folder: &Folder) -> Result<Child, ServersError> {
        let mut command = self.command(folder)?;
        command.spawn().map_err(ServersError::file("start", &self.program))
    }
}

impl Instance {
    /// A server that was not started yet.
    pub(super) fn new(folder: Folder, programs: Programs) -> Self {
        Self { folder, programs, children: Vec::new() }
    }

    /// Creates the server's data in the empty run folder.
    pub(super) async fn create(&self) -> Result<(), ServersError> {
        let Some(launch) = &self.programs.create else { return Ok(()) };
        let mut child = launch.spawn(&self.folder)?;
        let deadline = Instant::now() + CREATE_DEADLINE;
        while Instant::now() < deadline {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(None) => tokio::time::sleep(POLL_INTERVAL).await,
                Ok(Some(_)) | Err(_) => break,
            }
        }
        processes::kill_all(&self.folder.run()).await?;
        Err(ServersError::Program {
            action: format!("run {}", launch.program.display()),
            reason: self.folder.log_tail(),
        })
    }

    /// Runs a tool of the server's to its end.
    pub(super) async fn run(
        &self,
        launch: &Launch,
        deadline: Duration,
    ) -> Result<(), ServersError> {
        let mut child = launch.spawn(&self.folder)?;
        let end = Instant::now() + deadline;
        while Instant::now() < end {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(None) => tokio::time::sleep(POLL_INTERVAL).await,
                Ok(Some(_)) | Err(_) => break,
            }
        }
        // Ended already, or of no use any more.
        child.kill().ok();
        child.wait().ok();
        Err(ServersError::Program {
            action: format!("run {}", launch.program.display()),
            reason: self.folder.log_tail(),
        })
    }

    /// Starts the server's programs; does not wait for the main one.
    pub(super) async fn start(&mut self) -> Result<(), ServersError> {
        for launch in &self.programs.serve {
            let mut child = launch.spawn(&self.folder)?;
            let outcome = match launch.port {
                Some(port) => listening(port, &mut child).await,
                None => Ok(()),
            };
            self.children.push(child);
            outcome.map_err(|reason| ServersError::Program {
                action: format!("start {}", launch.program.display()),
                reason: format!("{reason}\n{}", self.folder.log_tail()),
            })?;
        }
        Ok(())
    }

    /// Kills the server, deletes all its data, and creates it anew without starting it.
    pub(super) async fn renew(&mut self) -> Result<(), ServersError> {
        self.kill().await?;
        self.folder.delete_run()?;
        self.folder.create_run()?;
        self.create().await
    }

    /// Keeps a copy of the data of a server that does not run.
    pub(super) fn back_up(&self) -> Result<(), ServersError> {
        Folder::copy(&self.folder.run(), &self.folder.file("backup"))
    }

    /// Kills the server, and puts the copy in the place of its data without starting it.
    pub(super) async fn restore(&mut self) -> Result<(), ServersError> {
        self.kill().await?;
        self.folder.delete_run()?;
        Folder::copy(&self.folder.file("backup"), &self.folder.run())
    }

    /// How the main program ended, if it has.
    pub(super) fn how_it_ended(&mut self) -> Option<String> {
        how_it_ended(self.children.last_mut()?)
    }

    /// Stops the main program in good order, then kills the others.
    pub(super) async fn stop(&mut self) -> Result<(), ServersError> {
        self.signal(Signal::CONT);
        if let Some(main) = self.children.last_mut() {
            // No other code waits for this child, so the id is still its own.
            if let (Ok(None), Some(pid)) = (main.try_wait(), Pid::from_raw(main.id() as i32)) {
                kill_process(pid, self.programs.stop_signal).ok();
            }
            let deadline = Instant::now() + STOP_DEADLINE;
            while Instant::now() < deadline && matches!(main.try_wait(), Ok(None)) {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
        self.kill().await
    }

    /// SIGKILLs every process of the server at once.
    pub(super) async fn kill(&mut self) -> Result<(), ServersError> {
        processes::kill_all(&self.folder.run()).await?;
        for mut child in self.children.drain(..) {
            // Killed above, or ended before: this only collects it.
            child.wait().ok();
        }
        Ok(())
    }

    /// The ids of the server's processes.
    pub(super) fn process_ids(&self) -> Vec<i32> {
        let pids = processes::belonging_to(&self.folder.run());
        pids.into_iter().map(Pid::as_raw_pid).collect()
    }

    /// Sends a signal to every process of the server.
    pub(super) fn signal(&self, signal: Signal) {
        processes::signal_all(&self.folder.run(), signal);
    }
}

/// Waits until `child` listens on its loopback port.
async fn listening(port: u16, child: &mut Child) -> Result<(), String> {
    let connect = async || {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.map(drop).map_err(|e| e.to_string())
    };
    ready::until(LISTEN_DEADLINE, connect, || how_it_ended(child)).await
}

fn how_it_ended(child: &mut Child) -> Option<String> {
    let status = child.try_wait().ok()??;
    Some(format!("it ended with {status}"))
}
