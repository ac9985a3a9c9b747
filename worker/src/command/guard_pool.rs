//! Guards that were started ahead, so that a task need not wait for its guard to start.
//!
//! To start a guard is to start the worker's program again, which takes longer than most small programs
//! do themselves. So there is a spare: it waits for its first orders, has nothing of any task, and ends by
//! itself when the worker does. A task that finds none has one started for it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::guard::{GUARD_ARGUMENT, GUARD_NAME, GuardProgram};

/// How many wait. Each occupies a megabyte or two.
const POOL_GUARDS: usize = 2;

/// A guard that was told nothing yet. Dropped, it ends.
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

    /// Whether it still waits, as far as can be seen: nobody else has ended it.
    fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }
}

/// The spares of one worker.
#[derive(Debug)]
pub(super) struct GuardPool {
    program: GuardProgram,
    idle: Mutex<Vec<IdleGuard>>,
}

impl GuardPool {
    /// None yet: the first task has its guard started.
    pub(super) fn new(program: GuardProgram) -> Self {
        Self { program, idle: Mutex::default() }
    }

    /// A guard: a spare, or one that is started now.
    pub(super) fn take(&self) -> io::Result<IdleGuard> {
        loop {
            let guard = self.lock().pop();
            let Some(mut guard) = guard else { return IdleGuard::start(&self.program) };
            if guard.is_alive() {
                return Ok(guard);
            }
        }
    }

    /// Starts what is missing. Where that fails, the next task will say why.
    pub(super) fn fill(&self) {
        while self.lock().len() < POOL_GUARDS {
            let Ok(guard) = IdleGuard::start(&self.program) else { return };
            let mut idle = self.lock();
            // Another task may have done the same meanwhile.
            if idle.len() < POOL_GUARDS {
                idle.push(guard);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<IdleGuard>> {
        // Nothing in here panics half way.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
