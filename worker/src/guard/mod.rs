//! The guard: a small process between the worker and each task it runs.
//!
//! # Purpose
//!
//! A task must not continue once its worker has lost the right to run it, because another worker may start the
//! next attempt. The worker itself cannot promise that: it may be killed with SIGKILL, or frozen past its
//! lease. So it starts its own program again as `guard`, and the guard starts the task.
//!
//! # Guarantees
//!
//! - The task leads a separate process group. The guard kills the group (SIGKILL) at once when the worker has
//!   ended (the control socket is closed), and when the lease's end passes without a renewal; the worker need
//!   not run for either.
//! - Nothing of a task outlives it: when its main process has ended, the guard kills the remaining group, and
//!   every descendant that left the group (a daemon, a `setsid`). The guard is their subreaper, so they become
//!   its children when their parents die.
//! - The guard sends the last report when nothing of the task runs any more. It contains the task's own exit
//!   code or signal exactly, and who or what stopped it.
//! - A task that exceeds its memory limit is killed, with all its descendants.
//! - The guard removes the folder that the worker made for the task, if the worker has ended.
//! - The guard holds its worker's instance lock (`crate::instance_lock`) until nothing of the task runs any
//!   more. The task does not hold it.
//! - A task that never reads its stdin, or closes it, delays nothing.
//!
//! # Shape
//!
//! Synchronous, one thread, almost no allocations. It guards one task after the other, because starting it takes
//! longer than most small programs run (`crate::executor::command`). It receives each assignment over its stdin,
//! one end of a socket pair whose lines `protocol` describes, with the pipes of the task's output; its environment is
//! empty. Between two tasks it has no child, no pipe and not the instance lock, and it ends with the worker. It leads a session, so
//! that Ctrl-C in the worker's terminal reaches neither it nor the task, and so that the worker finds the task
//! even if the guard is lost before it could report; and it has its own name (`sexton-guard`), so that `pkill
//! worker` does not hit it together with the worker.
//!
//! # Limits
//!
//! - Linux 5.4 or later (`pidfd_open`), with `CONFIG_PROC_CHILDREN`: without it memory cannot be limited (such
//!   a catalogue is refused), and processes that have left the task's group are killed late or not at all.
//! - If the guard alone is killed, the worker kills the guard's session. If both are killed in the same
//!   instant, the task runs unguarded: let the service manager signal only the worker (systemd:
//!   `KillMode=mixed`).
//! - The guard does not decide outcomes: timeouts, exit codes and output are the worker's matter.

mod assignment;
mod control;
pub(crate) mod fd_passing;
mod folder;
mod instant;
mod limits;
mod memory;
mod process;
pub(crate) mod protocol;
mod reaper;
mod setup;
mod watch;

use std::path::{Path, PathBuf};

pub(crate) use folder::TaskFolder;
pub use instant::HostInstant;
pub use limits::TaskLimits;
pub(crate) use memory::memory_can_be_watched;
pub(crate) use setup::Setup;

/// The first argument that makes the worker's program a guard.
pub(crate) const GUARD_ARGUMENT: &str = "guard";

/// The guard's name in the process table.
pub(crate) const GUARD_NAME: &str = "sexton-guard";

/// The variable that names the file, in the task's folder, to which the task may write its result.
pub(crate) const RESULT_FILE_VARIABLE: &str = "SEXTON_RESULT_FILE";

/// The program that runs as a guard: the worker's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardProgram(PathBuf);

impl GuardProgram {
    /// Returns the program of this process, even after an upgrade has replaced or removed its file.
    ///
    /// For a binary that calls [`run_guard_if_requested`] first thing in its `main`.
    pub fn current_executable() -> Self {
        Self(PathBuf::from("/proc/self/exe"))
    }

    /// Uses another binary that calls [`run_guard_if_requested`]; tests use the worker's.
    pub fn from_path(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

/// Becomes a guard and never returns, if the first argument requests it; otherwise does nothing.
///
/// Call it first thing in `main`, before any thread, runtime or log is started.
pub fn run_guard_if_requested() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == GUARD_ARGUMENT) {
        std::process::exit(process::run());
    }
}
