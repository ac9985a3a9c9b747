//! The guard: a small process between the worker and each task it runs.
//!
//! # Purpose
//!
//! A task must not go on running once its worker has lost the right to run it, because another
//! worker may start the next attempt. The worker itself cannot promise that: it may be killed with
//! SIGKILL, or frozen past its lease. So it starts its own program again as `guard`, and the guard
//! starts the task.
//!
//! # Guarantees
//!
//! - The task leads a process group of its own. The group is killed (SIGKILL) at once when the
//!   worker is gone (the control socket is closed), and when the lease's end passes without news of
//!   a renewal; the worker need not run for either.
//! - Nothing of a task outlives it: when its main process has ended, whatever is left of the group
//!   is killed, and so is every descendant that left the group (a daemon, a `setsid`). The guard is
//!   their subreaper, so they become its children when their parents die.
//! - The last report is sent when nothing of the task runs any more. It tells the task's own exit
//!   code or signal exactly, and whether the guard had a hand in it.
//! - A task that uses more memory than it may is killed, with all that descends from it.
//! - The folder that the worker made for the task goes with the task, also if the worker is gone.
//! - The guard holds the lock of its worker's seat (`crate::instance_lock`) until nothing of the task runs any
//!   more. The task does not have it.
//! - A task that never reads its stdin, or closes it, holds up nobody.
//!
//! # Shape
//!
//! Synchronous, one thread, no allocation worth naming: it starts in about two milliseconds, which no
//! task waits for as a rule, because it is started ahead (`crate::command`). What it is to run it is told
//! over its stdin, one end of a socket pair whose lines `protocol` describes; its environment is empty,
//! and its stdout and stderr are inherited by the task directly. A guard that is told nothing before the
//! worker's end was never needed, and ends. It leads a session of its own,
//! so that Ctrl-C in the worker's terminal reaches neither it nor the task, and so that the worker
//! finds the task even if the guard is lost before it could report; and it has its own name
//! (`sexton-guard`), so that `pkill worker` does not hit it together with the worker.
//!
//! # Limits
//!
//! - Linux 5.4 or later (`pidfd_open`), with `CONFIG_PROC_CHILDREN`: without it no memory is watched (the
//!   catalogue is refused then), and what has left the task's group is killed late or not at all.
//! - If the guard alone is killed, the worker kills the guard's session. If both are killed in the
//!   same instant, the task is on its own: let the service manager signal only the worker
//!   (systemd: `KillMode=mixed`).
//! - It does not judge: timeouts, exit codes and output are the worker's matter.

mod assignment;
pub(crate) mod fd_passing;
mod folder;
mod instant;
mod limits;
mod memory;
mod process;
pub(crate) mod protocol;
mod reaper;
mod setup;

use std::path::{Path, PathBuf};

pub(crate) use folder::TaskFolder;
pub use instant::HostInstant;
pub use limits::TaskLimits;
pub(crate) use memory::memory_can_be_watched;
pub(crate) use setup::Setup;

/// The first argument that makes the worker's program a guard.
pub(crate) const GUARD_ARGUMENT: &str = "guard";

/// The name that a guard bears in the process table.
pub(crate) const GUARD_NAME: &str = "sexton-guard";

/// The program that is started as a guard: the worker's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardProgram(PathBuf);

impl GuardProgram {
    /// This very process's program, even after its file was replaced by an upgrade or removed.
    ///
    /// For a binary that calls [`run_guard_if_requested`] first thing in its `main`.
    pub fn current_executable() -> Self {
        Self(PathBuf::from("/proc/self/exe"))
    }

    /// Another binary that calls [`run_guard_if_requested`]; tests run the worker's this way.
    pub fn from_path(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

/// Becomes a guard and never returns, if the first argument says so; otherwise does nothing.
///
/// Call it first thing in `main`, before any thread, runtime or log is started.
pub fn run_guard_if_requested() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == GUARD_ARGUMENT) {
        std::process::exit(process::run());
    }
}
