//! Keeps the guards of tasks that have ended for the next tasks.
//!
//! Starting a guard means starting the worker's program again, which takes longer than most small programs run. So
//! a guard serves one task after the other, and waits in the pool between them: it has nothing of any task then, and
//! ends by itself with the worker. There are as many guards as tasks ran at once, and those that have waited
//! [`IDLE_TIMEOUT`] end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::result::ResultFolder;
use super::spec::TaskUser;
use crate::guard::{GUARD_ARGUMENT, GUARD_NAME, GuardProgram};

/// How long a guard waits for a task. Each occupies about a megabyte.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// A guard without an assignment. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct IdleGuard {
    pub(super) process: Child,
    pub(super) control: UnixStream,
    /// The folder of its last task, which left it empty.
    pub(super) folder: Option<ResultFolder>,
}

impl IdleGuard {
    fn start(program: &GuardProgram) -> io::Result<Self> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let control = UnixStream::from_std(ours)?;
        // The command is dropped with its copy of the guard's end: while a copy lives here, the
        // guard's death would not close the socket.
        let process = Command::new(program.path())
            .arg0(GUARD_NAME)
            .arg(GUARD_ARGUMENT)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { process, control, folder: None })
    }

    /// Takes the folder of the last task if it is still there and empty, or makes one, for tasks of `user`.
    pub(super) fn folder(&mut self, user: Option<&TaskUser>) -> io::Result<ResultFolder> {
        match self.folder.take().filter(|folder| folder.is_for(user)) {
            Some(folder) => Ok(folder),
            None => ResultFolder::make(user),
        }
    }

    /// Returns whether it seems to be still running.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }
}

/// The idle guards, and since when each of them has been idle. The one that was used last comes last.
#[derive(Debug, Default)]
struct Idle {
    guards: Vec<(IdleGuard, Instant)>,
    /// Whether a task of the runtime ends those that have waited too long.
    is_watched: bool,
}

/// The idle guards of one worker.
#[derive(Debug)]
pub(super) struct GuardPool {
    program: GuardProgram,
    idle: Mutex<Idle>,
}

impl GuardPool {
    /// Creates an empty pool: the first tasks start their guards.
    pub(super) fn new(program: GuardProgram) -> Self {
        Self { program, idle: Mutex::default() }
    }

    /// Takes the guard that was used last, or starts one.
    pub(super) fn take(&self) -> io::Result<IdleGuard> {
        loop {
            let Some((mut guard, _)) = self.lock().guards.pop() else {
                return IdleGuard::start(&self.program);
            };
            if guard.is_alive() {
                return Ok(guard);
            }
        }
    }

    /// Keeps a guard whose task has ended.
    pub(super) fn put(self: &Arc<Self>, guard: IdleGuard) {
        let mut idle = self.lock();
        idle.guards.push((guard, Instant::now()));
        if !std::mem::replace(&mut idle.is_watched, true) {
            let pool = Arc::downgrade(self);
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(IDLE_TIMEOUT / 4).await;
                    if pool.upgrade().is_none_or(|pool| !pool.end_unused()) {
                        return;
                    }
                }
            });
        }
    }

    /// Ends the guards that have waited too long; returns whether there are others.
    fn end_unused(&self) -> bool {
        let mut idle = self.lock();
        let used = idle.guards.partition_point(|(_, since)| since.elapsed() >= IDLE_TIMEOUT);
        let unused: Vec<_> = idle.guards.drain(..used).collect();
        idle.is_watched = !idle.guards.is_empty();
        let is_watched = idle.is_watched;
        drop(idle);
        drop(unused);
        is_watched
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        // No code under this lock panics half way.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that ends when its control socket closes, as a guard does.
    fn guard() -> IdleGuard {
        let (ours, theirs) = StdUnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let control = UnixStream::from_std(ours).unwrap();
        let process = Command::new("/bin/cat").stdin(Stdio::from(OwnedFd::from(theirs))).spawn();
        IdleGuard { process: process.unwrap(), control, folder: None }
    }

    #[tokio::test(start_paused = true)]
    async fn guards_that_wait_for_a_minute_end_and_those_in_use_stay() {
        let pool = Arc::new(GuardPool::new(GuardProgram::from_path("/bin/false")));
        pool.put(guard());
        tokio::time::sleep(IDLE_TIMEOUT / 2).await;
        let used = guard();
        let kept = used.process.id();
        pool.put(used);
        // They are looked at each quarter of the time.
        tokio::time::sleep(IDLE_TIMEOUT * 3 / 4 + Duration::from_secs(1)).await;
        assert_eq!(pool.lock().guards.len(), 1);
        assert_eq!(pool.take().unwrap().process.id(), kept);
    }
}
