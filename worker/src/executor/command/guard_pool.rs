//! Keeps guards started in advance, so that a task need not wait for its guard to start.
//!
//! Starting a guard means starting the worker's program again, which takes longer than most small programs run.
//! So the pool holds idle guards: each waits for its assignment, has nothing of any task, and ends by itself
//! with the worker. A task that finds the pool empty starts a guard.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::guard::{GUARD_ARGUMENT, GUARD_NAME, GuardProgram};

/// The number of idle guards. Each occupies a megabyte or two.
const POOL_GUARDS: usize = 2;

/// A guard without an assignment. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct IdleGuard {
    pub(super) process: Child,
    pub(super) control: UnixStream,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl IdleGuard {
    fn start(program: &GuardProgram) -> io::Result<Self> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let control = UnixStream::from_std(ours)?;
        // The command is dropped with its copy of the guard's end: while a copy lives here, the
        // guard's death would not close the socket.
        let mut process = Command::new(program.path())
            .arg0(GUARD_NAME)
            .arg(GUARD_ARGUMENT)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let missing = || io::Error::other("a pipe is missing");
        let stdout = process.stdout.take().ok_or_else(missing)?;
        let stderr = process.stderr.take().ok_or_else(missing)?;
        Ok(Self { process, control, stdout, stderr })
    }

    /// Returns whether it seems to be still running.
    fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }
}

/// The idle guards of one worker.
#[derive(Debug)]
pub(super) struct GuardPool {
    program: GuardProgram,
    idle: Mutex<Vec<IdleGuard>>,
}

impl GuardPool {
    /// Creates an empty pool: the first task starts its guard.
    pub(super) fn new(program: GuardProgram) -> Self {
        Self { program, idle: Mutex::default() }
    }

    /// Takes an idle guard, or starts one.
    pub(super) fn take(&self) -> io::Result<IdleGuard> {
        loop {
            let guard = self.lock().pop();
            let Some(mut guard) = guard else { return IdleGuard::start(&self.program) };
            if guard.is_alive() {
                return Ok(guard);
            }
        }
    }

    /// Starts the missing guards. If that fails, the next task reports why.
    pub(super) fn fill(&self) {
        while self.lock().len() < POOL_GUARDS {
            let Ok(guard) = IdleGuard::start(&self.program) else { return };
            let mut idle = self.lock();
            // Another task may have filled the pool meanwhile.
            if idle.len() < POOL_GUARDS {
                idle.push(guard);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<IdleGuard>> {
        // No code under this lock panics half way.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
