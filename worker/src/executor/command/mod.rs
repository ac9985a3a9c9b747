//! Runs a task as a program of the host, under a [guard](crate::guard).
//!
//! # The program's environment
//!
//! - No shell: the program and the arguments are exactly those of the catalogue.
//! - Its params as JSON on stdin, or the catalogue's text instead. It need not read them.
//! - `SEXTON_EXECUTION_ID`, `SEXTON_ATTEMPT`, `SEXTON_JOB`, `SEXTON_TARGET` (if the job has one),
//!   `SEXTON_EXECUTION_KEY`, `SEXTON_SCHEDULED_FOR`, `SEXTON_DEADLINE` (both RFC 3339 UTC) and
//!   `SEXTON_IDEMPOTENCY_KEY`, and `SEXTON_RESULT_FILE`, the file to which it may write a result as JSON.
//! - The variables of the worker's environment that the catalogue's allow-list names, without the worker's own
//!   settings, and those that the catalogue sets, including [secrets](sexton_outbound::secret).
//! - The worker's working directory and user, unless the catalogue names others.
//!
//! # The outcome
//!
//! Exit code 0: success. 75: retry. 65: permanent failure. Any other: an ordinary error. A stop (timeout,
//! cancel, shutdown) sends SIGTERM, waits for the grace, and then sends SIGKILL; the exit code does not matter
//! then, not even 0, because a program that was stopped cannot be taken to have finished.
//!
//! Background processes end with the program, and so does the output: what they wrote until then is kept. See
//! [`crate::output`] for how much.
//!
//! # Limits
//!
//! The kernel limits processor time and open files of each process. The guard checks the memory of all
//! descendants of the task ten times a second and kills them all beyond the limit. The outcome distinguishes
//! both from other ends, and also from the kernel's own out-of-memory killer, as far as the counter of the
//! control group shows it.

pub(crate) mod environment;
mod guard_pool;
mod result;
mod running_guard;
mod session_kill;
mod spec;
mod verdict;

use std::ffi::OsString;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout};

use self::guard_pool::{GuardPool, IdleGuard};
use self::result::ResultFolder;
use self::running_guard::{Assignment, Pipes, RunningGuard};
use self::verdict::{FinalReport, verdict};
use crate::executor::SECRET_MISSING;
use crate::executor::cancellation::wait_for_cancellation;
use crate::executor::{Executor, Outcome, TaskControl, TaskEnd, TaskRun, WallClock};
use crate::guard::protocol::StartRefusal;
use crate::guard::{GuardProgram, RESULT_FILE_VARIABLE, Setup};
use crate::output::{Recorder, Stream};
use sexton_outbound::secret::{Secret, SecretMissing, SecretSource};

pub use self::spec::{
    CommandLine, CommandTask, GRACE_DEFAULT, INHERITED_VARIABLES, TaskEnvironment, TaskUser,
};
pub use crate::guard::TaskLimits;

/// How long output is still read after the task's end. All its writers have ended by then, so reading the
/// pipes' contents is quick.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// How much is read from a pipe at once, in bytes.
const READ_BYTES: usize = 16 * 1024;

/// State that all commands of a worker share.
pub struct CommandHost {
    guard_pool: Arc<GuardPool>,
    environment: Vec<(OsString, OsString)>,
    secrets: SecretSource,
    clock: WallClock,
}

impl CommandHost {
    /// Creates a host whose tasks inherit variables and read secrets from `environment`, normally
    /// [`std::env::vars_os`]; `clock` dates the lines of output.
    pub fn new(
        guard: GuardProgram,
        environment: impl Iterator<Item = (OsString, OsString)>,
        clock: WallClock,
    ) -> Self {
        let environment: Vec<_> = environment.collect();
        let secrets = SecretSource::new(environment.iter().cloned());
        Self { guard_pool: Arc::new(GuardPool::new(guard)), environment, secrets, clock }
    }
}

/// The executor of a task type that is a command.
pub struct CommandExecutor {
    host: Arc<CommandHost>,
    task: CommandTask,
    inherited_variables: Vec<(OsString, OsString)>,
}

impl CommandExecutor {
    /// Creates an executor of `task`.
    pub fn new(host: Arc<CommandHost>, task: CommandTask) -> Self {
        let inherited_variables = environment::inherited_variables(&task, &host.environment);
        Self { host, task, inherited_variables }
    }

    async fn assignment(
        &self,
        task: &TaskRun,
        folder: &ResultFolder,
        masks: &mut Vec<Secret>,
    ) -> Result<Assignment<'_>, Outcome> {
        let mut environment = self.inherited_variables.clone();
        for (name, value) in &self.task.environment.set {
            let text = self.host.secrets.text(value, masks).await;
            let text = text.map_err(|error| missing(&error))?;
            environment.push((name.into(), text.into()));
        }
        for (name, value) in environment::attempt_variables(task) {
            environment.push((name.into(), value.into()));
        }
        environment.push((RESULT_FILE_VARIABLE.into(), folder.file().into()));
        let CommandTask { line, directory, limits, .. } = &self.task;
        let setup = Setup {
            directory: directory.clone(),
            program: line.program.clone().into(),
            arguments: line.arguments.iter().map(Into::into).collect(),
            environment,
        };
        let impossible = || {
            let text = "its words and variables hold a NUL, or are too large together".to_owned();
            let refused = FinalReport::Refused { why: StartRefusal::Permanent, text };
            verdict(refused, None, None, limits).outcome
        };
        Ok(Assignment {
            task: &self.task,
            setup: setup.encode().ok_or_else(impossible)?,
            stdin: match &self.task.stdin {
                Some(text) => text.clone().into_bytes(),
                None => task.params.to_string().into_bytes(),
            },
            timeout: task.timeout,
        })
    }

    /// Runs the program to its end under this guard. Also returns the guard, unless it was not assigned the task.
    async fn run_guarded(
        &self,
        guard: IdleGuard,
        assignment: &Assignment<'_>,
        control: TaskControl,
    ) -> (TaskEnd, Option<RunningGuard>) {
        let limits = &self.task.limits;
        let (mut running_guard, mut pipes) = match RunningGuard::start(guard, assignment) {
            Ok(started) => started,
            Err(refused) => return (verdict(refused, None, None, limits), None),
        };
        let recorder = control.output().clone();
        let (last, stop_request) = {
            let mut reading = pin!(read(&mut pipes, &recorder, &self.host.clock));
            let mut ending = pin!(running_guard.supervise(assignment, control));
            let mut drained = false;
            let end = loop {
                tokio::select! {
                    end = &mut ending => break end,
                    () = &mut reading, if !drained => drained = true,
                }
            };
            if !drained {
                // A writer that has survived must not hold up the worker.
                let _ = timeout(DRAIN_TIMEOUT, reading).await;
            }
            end
        };
        drop(pipes);
        let end = verdict(last, stop_request, recorder.last_line().as_deref(), limits);
        (TaskEnd { output: recorder.finish(), ..end }, Some(running_guard))
    }

    /// Returns the end of a task for which this host lacks something now.
    fn could_not_start(&self, text: String) -> TaskEnd {
        let refused = FinalReport::Refused { why: StartRefusal::Retry, text };
        verdict(refused, None, None, &self.task.limits)
    }
}

#[async_trait]
impl Executor for CommandExecutor {
    async fn run(&self, task: &TaskRun, mut control: TaskControl) -> TaskEnd {
        let begun = Instant::now();
        let guard_pool = &self.host.guard_pool;
        let mut guard = match guard_pool.take() {
            Ok(guard) => guard,
            Err(error) => {
                return self.could_not_start(format!("cannot start the task's guard: {error}"));
            }
        };
        let folder = match guard.folder(self.task.user.as_ref()) {
            Ok(folder) => folder,
            Err(error) => {
                guard_pool.put(guard);
                return self.could_not_start(format!("cannot make a folder for the task: {error}"));
            }
        };
        let mut masks = Vec::new();
        let assigned = tokio::select! {
            biased;
            // A secret may be on a disk that does not answer.
            outcome = wait_for_cancellation(&mut control, task.timeout) => Err(outcome),
            assigned = self.assignment(task, &folder, &mut masks) => assigned,
        };
        let mut assignment = match assigned {
            Ok(assignment) => assignment,
            Err(outcome) => {
                guard_pool.put(guard);
                // The task was not assigned, so nothing is wanted.
                let _ = folder.close(false).await;
                return TaskEnd::new(outcome);
            }
        };
        if !guard.is_alive() {
            guard = match guard_pool.take() {
                Ok(guard) => guard,
                Err(error) => {
                    return self.could_not_start(format!("cannot start the task's guard: {error}"));
                }
            };
        }
        assignment.timeout = assignment.timeout.saturating_sub(begun.elapsed());
        control.output().mask(masks.iter().map(Secret::expose));
        let (mut end, running_guard) = self.run_guarded(guard, &assignment, control).await;
        let succeeded = end.outcome == Outcome::Succeeded;
        let untouched = running_guard.as_ref().is_some_and(RunningGuard::has_untouched_folder);
        // Nothing was written, so there is nothing to read or to remove.
        let mut kept = Some(folder);
        if let Some(folder) = kept.take_if(|_| !(succeeded && untouched)) {
            // Before the guard is let go: one that ends, or whose next task fails at once, removes the folder.
            match folder.close(succeeded).await {
                Ok(result) => end.result = result,
                Err(outcome) => end.outcome = outcome,
            }
        }
        if let Some(running_guard) = running_guard
            && let Some(guard) = running_guard.finish().await
        {
            guard_pool.put(IdleGuard { folder: kept, ..guard });
        }
        end
    }
}

fn missing(secret: &SecretMissing) -> Outcome {
    Outcome::Failed { class: SECRET_MISSING.to_owned(), message: secret.to_string() }
}

/// Reads both pipes until all their writers have closed them.
async fn read(pipes: &mut Pipes, recorder: &Recorder, clock: &WallClock) {
    let (mut stdout, mut stderr) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
    let (mut stdout_open, mut stderr_open) = (true, true);
    while stdout_open || stderr_open {
        tokio::select! {
            count = read_some(&mut pipes.stdout, &mut stdout), if stdout_open => {
                recorder.push(Stream::Stdout, clock(), &stdout[..count]);
                stdout_open = count > 0;
            }
            count = read_some(&mut pipes.stderr, &mut stderr), if stderr_open => {
                recorder.push(Stream::Stderr, clock(), &stderr[..count]);
                stderr_open = count > 0;
            }
        }
    }
}

/// Reads what is available; 0 at the end. A read error counts as the end: the task's result does not depend on
/// its output.
async fn read_some(pipe: &mut (impl AsyncRead + Unpin), buffer: &mut [u8]) -> usize {
    pipe.read(buffer).await.unwrap_or(0)
}
