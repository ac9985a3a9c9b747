//! One running scheduler or worker.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

use super::environment::Environment;
use super::{binaries, readiness};

/// Longest start: a slow machine, a broker that is coming up.
const READY_DEADLINE: Duration = Duration::from_mins(2);

/// Between two looks at a process or at its log.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// So many lines of a log are shown.
const TAIL_LINES: usize = 30;

/// One process; killed with its platform, whether this value is kept or not.
#[derive(Debug)]
pub struct Program {
    name: String,
    pid: u32,
    log: PathBuf,
    process: Arc<Mutex<Child>>,
}

/// What the platform keeps of a program that it has handed out.
#[derive(Debug)]
pub(super) struct Watched {
    name: String,
    log: PathBuf,
    process: Arc<Mutex<Child>>,
}

impl Program {
    pub(super) fn start(
        binary: (&str, &[&str]),
        name: &str,
        environment: &Environment,
        folder: &Path,
        log: PathBuf,
    ) -> Result<Self> {
        let file = File::create(&log).with_context(|| format!("create {}", log.display()))?;
        let (binary, arguments) = binary;
        let process = Command::new(binaries::find(binary)?)
            .args(arguments)
            .env_clear()
            .envs(environment.iter())
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            // Ctrl-C is for the harness, which ends its programs itself.
            .process_group(0)
            .spawn()
            .with_context(|| format!("failed to start {binary} {name}"))?;
        let (name, pid) = (name.to_owned(), process.id());
        Ok(Self { name, pid, log, process: Arc::new(Mutex::new(process)) })
    }

    pub(super) fn watched(&self) -> Watched {
        let (name, log) = (self.name.clone(), self.log.clone());
        Watched { name, log, process: Arc::clone(&self.process) }
    }

    /// `SEXTON_INSTANCE`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process id; a stranger's, perhaps, once the process has ended.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until `/readyz` says yes.
    ///
    /// # Panics
    ///
    /// If the program ends, or is not ready within two minutes.
    pub async fn ready(&mut self) {
        if let Err(error) = self.try_ready().await {
            panic!("{error:#}");
        }
    }

    /// As [`Self::ready`], for those who must not panic.
    pub async fn try_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_DEADLINE;
        let mut last = "it has not said where it answers".to_owned();
        while Instant::now() < deadline {
            if let Some(status) = self.ended() {
                bail!("{} ended ({status}) before it was ready\n{}", self.name, self.tail());
            }
            let log = self.log();
            if let Some(address) = readiness::address(&log) {
                match readiness::ask(address, "/readyz").await {
                    Ok((true, _)) => return Ok(()),
                    Ok((false, answer)) => last = answer,
                    Err(error) => last = error.to_string(),
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        bail!("{} is not ready after {READY_DEADLINE:?}: {last}\n{}", self.name, self.tail())
    }

    /// What it answers to `path`, `/livez`, `/readyz` or `/metrics`: whether the status is 200, and the response;
    /// `None`: it does not answer.
    pub async fn ask(&self, path: &str) -> Option<(bool, String)> {
        let log = self.log();
        readiness::ask(readiness::address(&log)?, path).await.ok()
    }

    /// Where it answers health checks and metrics, once it has logged that.
    pub fn health_address(&self) -> Option<String> {
        readiness::address(&self.log()).map(ToOwned::to_owned)
    }

    /// SIGKILL, and waits until the process is gone. Does nothing if it has ended.
    pub fn kill(&mut self) {
        kill(&self.process);
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGSTOP: the process freezes, its connections stay open.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Waits for the process's end.
    ///
    /// # Panics
    ///
    /// After `deadline`, with the end of its log.
    pub async fn exit(&mut self, deadline: Duration) -> ExitStatus {
        let end = Instant::now() + deadline;
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(
                Instant::now() < end,
                "{} still runs after {deadline:?}\n{}",
                self.name,
                self.tail()
            );
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<ExitStatus> {
        lock(&self.process).try_wait().ok().flatten()
    }

    /// Where it logs to; deleted with the platform.
    pub fn log_file(&self) -> PathBuf {
        self.log.clone()
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        read(&self.log)
    }

    fn tail(&self) -> String {
        tail(&self.name, &self.log)
    }

    fn signal(&self, signal: Signal) {
        let mut process = lock(&self.process);
        // As long as it is not waited for, the number is this process's own.
        if let (Ok(None), Some(pid)) = (process.try_wait(), Pid::from_raw(self.pid as i32)) {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Watched {
    pub(super) fn log(&self) -> String {
        format!("--- {}\n{}\n", self.name, read(&self.log))
    }

    pub(super) fn log_tail(&self) -> String {
        tail(&self.name, &self.log)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        kill(&self.process);
    }
}

fn kill(process: &Mutex<Child>) {
    let mut process = lock(process);
    // Both fail only for a process that has been waited for.
    let _ = process.kill();
    let _ = process.wait();
}

fn lock(process: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(log: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned()
}

fn tail(name: &str, log: &Path) -> String {
    let text = read(log);
    let lines: Vec<_> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    format!("--- {name}\n{}\n", lines[from..].join("\n"))
}
