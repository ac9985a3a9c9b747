//! The scheduler and the workers of a measurement.
//!
//! Each is the child of a shell that waits for it, and ends it when its standard input ends: that is a pipe which only
//! this process holds open. So they end when this process does, however it does.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use super::environment::{BenchEnvironment, POOL};
use crate::failure::Failure;

/// Ends the program when the input ends, and ends as the program does.
const GUARD_SCRIPT: &str = "exec 3<&0; \"$@\" </dev/null & program=$!; \
    { while read -r _ <&3; do :; done; kill -TERM $program 2>/dev/null; } & reader=$!; \
    wait $program; status=$?; kill $reader 2>/dev/null; exit $status";
/// A worker with a task under way gets as long; theirs take no time.
const STOP_TIMEOUT: Duration = Duration::from_secs(40);
/// Of a program's log, shown when it has ended by itself; and so many bytes of it are read for them.
const MAX_LOG_LINES: usize = 5;
const MAX_LOG_BYTES: u64 = 4_096;

/// How the workers work.
#[derive(Clone, Copy, Debug)]
pub struct Workers {
    /// How many there are.
    pub count: u8,
    /// Slots of each.
    pub slots: u16,
    /// Messages that a slot holds.
    pub prefetch: u16,
}

/// Programs that run.
#[derive(Debug)]
pub struct Programs {
    folder: PathBuf,
    running: Vec<RunningProgram>,
}

#[derive(Debug)]
struct RunningProgram {
    name: String,
    log: PathBuf,
    /// Open as long as it is to run.
    input: Option<ChildStdin>,
    shell: Child,
}

impl Programs {
    /// None yet. Their files are in `folder`.
    ///
    /// # Errors
    ///
    /// [`Failure`] with where the programs were looked for.
    pub fn new(folder: &Path) -> Result<Self, Failure> {
        find_program("scheduler")?;
        find_program("worker")?;
        let tasks = "[tasks.\"bench.noop\"]\nnoop = true\n";
        std::fs::write(folder.join("tasks.toml"), tasks)?;
        Ok(Self { folder: folder.to_owned(), running: Vec::new() })
    }

    /// Starts a scheduler.
    ///
    /// # Errors
    ///
    /// [`Failure`].
    pub fn start_scheduler(&mut self, environment: &BenchEnvironment) -> Result<(), Failure> {
        self.start("scheduler", "bench-scheduler", environment, &[])
    }

    /// Starts workers.
    ///
    /// # Errors
    ///
    /// [`Failure`].
    pub fn start_workers(
        &mut self,
        environment: &BenchEnvironment,
        workers: Workers,
    ) -> Result<(), Failure> {
        let tasks = self.folder.join("tasks.toml").display().to_string();
        let (slots, prefetch) = (workers.slots.to_string(), workers.prefetch.to_string());
        for number in 1..=workers.count {
            let settings = [
                ("WORKER_TASKS", &*tasks),
                ("WORKER_POOLS", POOL),
                ("WORKER_SLOTS", &*slots),
                ("WORKER_PREFETCH", &*prefetch),
            ];
            self.start("worker", &format!("bench-worker-{number}"), environment, &settings)?;
        }
        Ok(())
    }

    fn start(
        &mut self,
        program: &str,
        name: &str,
        environment: &BenchEnvironment,
        settings: &[(&str, &str)],
    ) -> Result<(), Failure> {
        let log = self.folder.join(format!("{name}.log"));
        let log_file = File::create(&log)?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", GUARD_SCRIPT, "sexton-bench"]).arg(find_program(program)?);
        command
            .env("DATABASE_URL", &environment.urls.database)
            .env("AMQP_URL", &environment.urls.amqp);
        command.env("SEXTON_NAMESPACE", environment.namespace()).env("SEXTON_INSTANCE", name);
        command.env("SEXTON_STATE_DIR", &self.folder).env("HEALTH_ADDR", "127.0.0.1:0");
        // The platform's own jobs are not to run here.
        command.env_remove("CRON_JOBS").env_remove("SEXTON_SERVICE");
        command.envs(settings.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log_file);
        // Control-C is this process's: it ends them itself.
        command.process_group(0);
        let mut shell = command.spawn().map_err(|error| {
            Failure::Failed(format!("the {program} cannot be started: /bin/sh: {error}"))
        })?;
        let input = shell.stdin.take();
        self.running.push(RunningProgram { name: name.to_owned(), log, input, shell });
        Ok(())
    }

    /// Fails if one of them has ended by itself.
    ///
    /// # Errors
    ///
    /// [`Failure`] with the end of its log.
    pub fn check(&mut self) -> Result<(), Failure> {
        for program in &mut self.running {
            if let Some(status) = program.shell.try_wait()? {
                let (name, log_tail) =
                    (&program.name, last_lines(&program.log).unwrap_or_default());
                return Err(Failure::Failed(format!("{name} ended ({status}):\n{log_tail}")));
            }
        }
        Ok(())
    }

    /// Ends them all, and waits for it. One that does not end in time is killed.
    pub async fn stop(&mut self) {
        for program in &mut self.running {
            program.input = None;
        }
        for mut program in self.running.drain(..) {
            let group = program.shell.id().and_then(|id| Pid::from_raw(id.cast_signed()));
            if timeout(STOP_TIMEOUT, program.shell.wait()).await.is_err() {
                // The shell and the program: alone, it would declare again what is removed.
                let _ = group.map(|group| kill_process_group(group, Signal::KILL));
                let _ = program.shell.wait().await;
            }
        }
    }
}

fn last_lines(log: &Path) -> std::io::Result<String> {
    let mut log = File::open(log)?;
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(MAX_LOG_BYTES)))?;
    let mut last = Vec::new();
    log.take(MAX_LOG_BYTES).read_to_end(&mut last)?;
    let last = String::from_utf8_lossy(&last);
    let lines: Vec<&str> = last.lines().rev().take(MAX_LOG_LINES).collect();
    Ok(lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
}

/// Beside this program, or on the search path.
fn find_program(program: &str) -> Result<PathBuf, Failure> {
    let settings = std::env::current_exe().ok();
    let beside = settings.iter().filter_map(|path| path.parent()).map(Path::to_owned);
    let searched = std::env::var_os("PATH").unwrap_or_default();
    let all: Vec<PathBuf> = beside.chain(std::env::split_paths(&searched)).collect();
    let there = |folder: &PathBuf| Some(folder.join(program)).filter(|path| path.is_file());
    all.iter().find_map(there).ok_or_else(|| {
        let beside = all.first().map_or(String::new(), |folder| format!(" in {} or", folder.display()));
        Failure::NotFound(format!(
            "the program `{program}` is not{beside} on the PATH; it is measured itself, so install it beside \
             `sexton`"
        ))
    })
}
