//! Runs a task as a program of the host, under a [guard](crate::guard).
//!
//! # What a program finds
//!
//! - No shell in between: the program and the arguments are the catalogue's, word for word.
//! - Its params as JSON on stdin. It may leave them unread.
//! - `SEXTON_EXECUTION_ID`, `SEXTON_ATTEMPT`, `SEXTON_JOB`, `SEXTON_TARGET` (if the job has one),
//!   `SEXTON_EXECUTION_KEY`, `SEXTON_SCHEDULED_FOR`, `SEXTON_DEADLINE` (both RFC 3339 UTC) and
//!   `SEXTON_IDEMPOTENCY_KEY`, beside the worker's environment without the worker's own settings.
//! - The worker's working directory and user.
//!
//! # What it answers
//!
//! Exit code 0: done. 75: try again. 65: trying again cannot help. Any other: an ordinary error.
//! When it is stopped (timeout, cancel, shutdown) it receives SIGTERM, has the grace to clear up,
//! and then SIGKILL; its exit code does not matter then, not even 0, because a program that was told
//! to stop cannot be taken to have finished.
//!
//! Background processes end with the program, and so does the output: what they wrote until then is
//! kept. See [`crate::output`] for how much.

mod environment;
mod guarded;
mod leftovers;
mod verdict;

use std::ffi::OsString;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use self::guarded::{Assignment, Guarded, Pipes};
use self::verdict::verdict;
use crate::executor::{Executor, TaskControl, TaskEnd, TaskRun, WallClock};
use crate::guard::GuardProgram;
use crate::output::{Capture, Output, OutputLimits, Stream};

/// How long output is still read after the task's end. All its writers are gone by then; what the
/// pipes hold is read in no time.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// How much is read from a pipe at once, in bytes.
const READ_BYTES: usize = 16 * 1024;

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// Its arguments, without the program itself.
    pub arguments: Vec<String>,
}

/// What all commands of a worker share.
pub struct CommandHost {
    guard: GuardProgram,
    environment: Vec<(OsString, OsString)>,
    clock: WallClock,
    limits: OutputLimits,
}

impl CommandHost {
    /// A host whose tasks inherit `environment` (without the worker's own settings), normally
    /// [`std::env::vars_os`]; `clock` dates the lines of output.
    pub fn new(
        guard: GuardProgram,
        environment: impl Iterator<Item = (OsString, OsString)>,
        clock: WallClock,
        limits: OutputLimits,
    ) -> Self {
        Self { guard, environment: environment::inherited(environment), clock, limits }
    }
}

/// Runs one task type as a command.
pub struct CommandExecutor {
    host: Arc<CommandHost>,
    line: CommandLine,
    grace: Duration,
}

impl CommandExecutor {
    /// An executor of `line`; `grace` passes between SIGTERM and SIGKILL.
    pub fn new(host: Arc<CommandHost>, line: CommandLine, grace: Duration) -> Self {
        Self { host, line, grace }
    }

    fn assignment(&self, task: &TaskRun) -> Assignment<'_> {
        let describing = environment::describing(task).into_iter();
        let describing = describing.map(|(name, value)| (name.into(), value.into()));
        Assignment {
            line: &self.line,
            environment: self.host.environment.iter().cloned().chain(describing).collect(),
            params: task.params.to_string().into_bytes(),
            grace: self.grace,
            timeout: task.timeout,
        }
    }
}

#[async_trait]
impl Executor for CommandExecutor {
    async fn run(&self, task: &TaskRun, control: TaskControl) -> TaskEnd {
        let assignment = self.assignment(task);
        let (mut guarded, mut pipes) = match Guarded::start(&self.host.guard, &assignment) {
            Ok(started) => started,
            Err(refused) => return verdict(refused, None, Output::default()),
        };
        let mut capture = Capture::new(self.host.limits);
        let (last, asked) = {
            let mut reading = pin!(read(&mut pipes, &mut capture, &self.host.clock));
            let mut ending = pin!(guarded.supervise(&assignment, control));
            let mut drained = false;
            let end = loop {
                tokio::select! {
                    end = &mut ending => break end,
                    () = &mut reading, if !drained => drained = true,
                }
            };
            if !drained {
                // A writer that is left against all odds must not hold up the worker.
                let _ = timeout(DRAIN_LIMIT, reading).await;
            }
            end
        };
        drop(pipes);
        guarded.reap().await;
        verdict(last, asked, capture.finish())
    }
}

/// Reads both pipes until nobody can write to them any more.
async fn read(pipes: &mut Pipes, capture: &mut Capture, clock: &WallClock) {
    let (mut stdout, mut stderr) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
    let (mut stdout_open, mut stderr_open) = (true, true);
    while stdout_open || stderr_open {
        tokio::select! {
            count = read_some(&mut pipes.stdout, &mut stdout), if stdout_open => {
                capture.push(Stream::Stdout, clock(), &stdout[..count]);
                stdout_open = count > 0;
            }
            count = read_some(&mut pipes.stderr, &mut stderr), if stderr_open => {
                capture.push(Stream::Stderr, clock(), &stderr[..count]);
                stderr_open = count > 0;
            }
        }
    }
}

/// Reads what there is; 0 at the end. A pipe that cannot be read has ended, too: the task's result
/// does not hang on its output.
async fn read_some(pipe: &mut (impl AsyncRead + Unpin), buffer: &mut [u8]) -> usize {
    pipe.read(buffer).await.unwrap_or(0)
}
