//! A platform with two schedulers and two workers, for the demo and for `make up`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sexton_servers::Servers;
use tokio::time::Instant;

use crate::platform::{Platform, Program};

/// The lease, in milliseconds: short, so that the demo's audience need not wait long after a worker's death.
const LEASE_MS: &str = "5000";

/// The time between two checks of programs that are stopping.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The running platform. Dropping it stops and deletes everything.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) schedulers: Vec<Program>,
    pub(super) workers: Vec<Program>,
    /// `sexton serve`.
    server: Option<Program>,
    pub(super) platform: Platform,
}

impl Cluster {
    /// Creates a database and a namespace called `name`, and migrates through `sexton migrate`.
    pub(super) async fn build(servers: &Servers, name: &str) -> Result<Self> {
        let (database, broker) = (&servers.database_url, &servers.amqp_url);
        let platform = Platform::unmigrated_on(database, broker, name).await?;
        let output = platform.try_sexton(&["migrate"]).await?;
        ensure!(output.status.success(), "sexton migrate failed: {output}");
        Ok(Self { schedulers: Vec::new(), workers: Vec::new(), server: None, platform })
    }

    /// Starts two of each, the workers with the catalogue at `tasks`, and the console, in which everybody on this machine may do
    /// everything; waits until all are ready. Without a catalogue there are no workers.
    pub(super) async fn start(&mut self, tasks: Option<&Path>) -> Result<()> {
        for name in ["scheduler-1", "scheduler-2"] {
            self.schedulers.push(self.platform.start_scheduler(name, &[])?);
        }
        if let Some(tasks) = tasks {
            let tasks = tasks.to_str().context("the catalogue's path is not UTF-8")?;
            for name in ["worker-1", "worker-2"] {
                let env = [("WORKER_TASKS", tasks), ("LEASE_MS", LEASE_MS)];
                self.workers.push(self.platform.start_worker(name, &env)?);
            }
        }
        let env = [("SERVE_LOCAL_ROLE", "admin")];
        self.server = Some(self.platform.start_server("console", &env)?);
        for program in self.programs_mut() {
            program.try_ready().await?;
        }
        Ok(())
    }

    /// Every program that was started.
    pub(super) fn programs(&self) -> impl Iterator<Item = &Program> {
        self.schedulers.iter().chain(&self.workers).chain(&self.server)
    }

    fn programs_mut(&mut self) -> impl Iterator<Item = &mut Program> {
        self.schedulers.iter_mut().chain(&mut self.workers).chain(&mut self.server)
    }

    /// The address of the console, once it has logged that.
    pub(super) fn console(&self) -> Option<String> {
        let log = self.server.as_ref()?.log();
        let (_, address) = log.split_once("the console is at ")?;
        address.split(',').next().map(ToOwned::to_owned)
    }

    /// Stops the programs in good order, within `deadline`, and deletes everything.
    pub(super) async fn stop(self, deadline: Duration) {
        self.programs().for_each(Program::terminate);
        let end = Instant::now() + deadline;
        while self.programs().any(|p| p.ended().is_none()) && Instant::now() < end {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Kills the program called `name` with SIGKILL; returns its process id, or `None` if there is none.
    pub(super) fn kill(&mut self, name: &str) -> Option<u32> {
        let program = self.programs_mut().find(|program| program.name() == name)?;
        program.kill();
        Some(program.pid())
    }
}

/// A file of `examples/`.
pub(super) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}
