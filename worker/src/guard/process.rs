//! The guard's process, from its start to its last report. The parent module says why.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::process::{Pid, Signal, fchdir, getpid, set_child_subreaper, setsid};

use super::assignment::{GuardAssignment, receive_assignment};
use super::control::{Control, report};
use super::limits::LoweredLimits;
use super::memory::KernelKills;
use super::protocol::{Report, SHELL_SIGNAL_BASE, StartRefusal, Status, StoppedBy};
use super::reaper::reap_all;
use super::watch::TaskWatch;
use super::{GUARD_NAME, HostInstant, RESULT_FILE_VARIABLE, Setup, TaskFolder};

/// Exit status of a guard that could not do its work (`EX_SOFTWARE`); 0 after any last report.
const GUARD_FAILED: i32 = 70;

/// Guards one task after the other; returns the guard's own exit status.
pub(super) fn run() -> i32 {
    if !control_is_a_socket() {
        eprintln!("guard: started by the worker, not by hand");
        return GUARD_FAILED;
    }
    // The name helps people only.
    let _ = rustix::thread::set_name(&std::ffi::CString::new(GUARD_NAME).unwrap_or_default());
    match Guard::new().and_then(Guard::serve) {
        Ok(()) => 0,
        Err(error) => failed(&error),
    }
}

fn failed(error: &io::Error) -> i32 {
    let text = format!("the guard failed: {error}");
    report(&Report::Refused { why: StartRefusal::Retry, text });
    GUARD_FAILED
}

fn control_is_a_socket() -> bool {
    let kind = fstat(io::stdin()).map(|status| FileType::from_raw_mode(status.st_mode));
    kind == Ok(FileType::Socket)
}

/// Opens the folder that the worker made for the task.
fn folder(setup: &Setup) -> Option<TaskFolder> {
    let file = Path::new(setup.variable(RESULT_FILE_VARIABLE)?);
    TaskFolder::open(file.parent()?.to_owned()).ok()
}

/// The state of a guard between two tasks.
struct Guard {
    control: Control,
    kills: KernelKills,
    /// The worker's directory; `None` if this user may not search it.
    directory: Option<OwnedFd>,
}

impl Guard {
    fn new() -> io::Result<Self> {
        setsid()?;
        set_child_subreaper(Some(getpid()))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, ".", flags, Mode::empty()).ok();
        Ok(Self { control: Control::new()?, kills: KernelKills::find(), directory })
    }

    /// Guards tasks until the worker has ended, or this guard retires.
    fn serve(mut self) -> io::Result<()> {
        let mut last_folder = None;
        let served = loop {
            let mut assignment = match receive_assignment(&mut self.control) {
                Ok(Some(assignment)) => assignment,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            // Until nothing of the task is left; then another worker may get it.
            let _lock_file = assignment.lock_file.take();
            // Opened before the task can put something else in its place.
            last_folder = folder(&assignment.setup);
            let has_moved = assignment.setup.directory.is_some();
            let mut last = match self.run(assignment) {
                Ok(last) => last,
                Err(error) => break Err(error),
            };
            if let Report::Ended { untouched, retires, .. } = &mut last {
                *untouched = last_folder.as_ref().is_some_and(TaskFolder::is_untouched);
                *retires |= has_moved && !self.return_to_directory();
            }
            report(&last);
            if !matches!(last, Report::Ended { retires: false, .. }) {
                break Ok(());
            }
        };
        if let Some(folder) = last_folder.filter(|_| self.control.worker_is_gone()) {
            // The worker ended before it could. If this fails, the system's cleanup of temporary files does it.
            let _ = folder.remove();
        }
        served
    }

    fn return_to_directory(&self) -> bool {
        self.directory.as_ref().is_some_and(|directory| fchdir(directory).is_ok())
    }

    /// Starts the task and watches it until its end.
    fn run(&mut self, assignment: GuardAssignment) -> io::Result<Report> {
        let GuardAssignment { start, setup, params, stdout, stderr, .. } = assignment;
        if start.deadline <= HostInstant::now() {
            let text = "the lease was over before the task could be started".to_owned();
            return Ok(Report::Refused { why: StartRefusal::Lease, text });
        }
        if let Some(directory) = &setup.directory
            && let Err(error) = std::env::set_current_dir(directory)
        {
            return Ok(no_directory(directory, &error));
        }
        let mut command = setup.command();
        if let Some((uid, gid)) = start.user {
            // Supplementary groups are dropped together with the rights of root.
            command.uid(uid).gid(gid);
        }
        command.process_group(0).stdin(Stdio::piped()).stdout(stdout).stderr(stderr);
        self.kills.begin();
        let lowered = LoweredLimits::lower(&start.limits)?;
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                lowered.restore(None);
                return Ok(refusal(&command, &error));
            }
        };
        let task = Pid::from_child(&child);
        lowered.restore(Some(task));
        // The pipes of the output end with the task.
        drop(command);
        report(&Report::Started { pid: task.as_raw_pid() });
        let stdin = child.stdin.take();
        let watched = TaskWatch::new(&mut self.control, task, stdin, start, params);
        match watched.and_then(TaskWatch::run) {
            Ok(Report::Ended { status, stopped: StoppedBy::Nobody, untouched, retires })
                if was_killed(status) && self.kills.has_increased() =>
            {
                Ok(Report::Ended { status, stopped: StoppedBy::Kernel, untouched, retires })
            }
            Ok(report) => Ok(report),
            Err(error) => {
                // On any error the task is killed: an unguarded task is worse.
                reap_all(task);
                Err(error)
            }
        }
    }
}

/// Returns whether the task was killed, or a shell reports that of its last program.
fn was_killed(status: Status) -> bool {
    let kill = Signal::KILL.as_raw();
    [Status::Signalled(kill), Status::Exited(SHELL_SIGNAL_BASE + kill)].contains(&status)
}

fn refusal(command: &Command, error: &io::Error) -> Report {
    let why = match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::ArgumentListTooLong => StartRefusal::Permanent,
        // A program that is missing now may be in the middle of an upgrade.
        _ => StartRefusal::Retry,
    };
    let program = command.get_program().to_string_lossy();
    Report::Refused { why, text: format!("cannot start {program}: {error}") }
}

fn no_directory(directory: &Path, error: &io::Error) -> Report {
    let directory_is = directory.display();
    let text = if directory.is_dir() {
        format!("cannot enter the directory {directory_is}: {error}")
    } else {
        format!("the directory {directory_is} is not there")
    };
    Report::Refused { why: StartRefusal::Retry, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_was_killed_also_where_a_shell_says_so() {
        assert!(was_killed(Status::Signalled(9)) && was_killed(Status::Exited(137)));
        for other in [Status::Exited(0), Status::Exited(9), Status::Signalled(15)] {
            assert!(!was_killed(other), "{other:?}");
        }
    }
}
