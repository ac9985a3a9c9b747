//! The guard's process, from its start to its last report. The parent module says why.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Stdin, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus, pidfd_open};
use rustix::stdio::{dup2_stderr, dup2_stdout};

use super::assignment::{GuardAssignment, receive_assignment};
use super::limits::LoweredLimits;
use super::memory::{KernelKills, MemoryWatch};
use super::protocol::{
    LineBuffer, Order, Report, SHELL_SIGNAL_BASE, Start, StartRefusal, Status, StoppedBy,
};
use super::reaper::{reap_all, signal_task};
use super::{GUARD_NAME, HostInstant, RESULT_FILE_VARIABLE, Setup, TaskFolder};

/// Exit status of a guard that could not do its work (`EX_SOFTWARE`); 0 after any last report.
const GUARD_FAILED: i32 = 70;

/// Guards one task; returns the guard's own exit status.
pub(super) fn run() -> i32 {
    if !control_is_a_socket() {
        eprintln!("guard: started by the worker, not by hand");
        return GUARD_FAILED;
    }
    // The name helps people only.
    let _ = rustix::thread::set_name(&std::ffi::CString::new(GUARD_NAME).unwrap_or_default());
    let mut assignment = match receive_assignment() {
        Ok(Some(assignment)) => assignment,
        Ok(None) => return 0,
        Err(error) => return failed(&error),
    };
    let lock_file = assignment.lock_file.take();
    // Opened before the task can put something else in its place.
    let folder = folder(&assignment.setup);
    let status = match guard(assignment) {
        Ok(last) => {
            report(&last);
            0
        }
        Err(error) => failed(&error),
    };
    if let Some(folder) = folder.filter(|_| worker_is_gone()) {
        // The guard removes it in case the worker cannot. If this fails, the system's cleanup of temporary
        // files removes it.
        let _ = folder.remove();
    }
    // Nothing of the task is left when another worker gets the instance lock.
    drop(lock_file);
    status
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

fn worker_is_gone() -> bool {
    let control = io::stdin();
    let mut fds = [PollFd::new(&control, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}

/// Opens the folder that the worker made for the task.
fn folder(setup: &Setup) -> Option<TaskFolder> {
    let file = Path::new(setup.variable(RESULT_FILE_VARIABLE)?);
    TaskFolder::open(file.parent()?.to_owned()).ok()
}

/// Sends one line to the worker. If the worker has ended, the report is not needed.
fn report(report: &Report) {
    let _ = rustix::io::write(io::stdin(), format!("{report}\n").as_bytes());
}

/// Starts the task and watches it until its end.
fn guard(GuardAssignment { start, setup, params, .. }: GuardAssignment) -> io::Result<Report> {
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
    let kills = KernelKills::begin();
    let lowered = LoweredLimits::lower(&start.limits)?;
    let mut child = match command.process_group(0).stdin(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => {
            lowered.restore(None);
            return Ok(refusal(&command, &error));
        }
    };
    let task = Pid::from_child(&child);
    lowered.restore(Some(task));
    release_output();
    let watched = TaskWatch::new(task, child.stdin.take(), start, params).and_then(TaskWatch::run);
    match watched {
        Ok(Report::Ended { status, stopped: StoppedBy::Nobody })
            if was_killed(status) && kills.has_increased() =>
        {
            Ok(Report::Ended { status, stopped: StoppedBy::Kernel })
        }
        Ok(report) => Ok(report),
        Err(error) => {
            // On any error the task is killed: an unguarded task is worse.
            reap_all(task);
            Err(error)
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

/// Leaves the output pipes to the task alone, so that they end with it.
fn release_output() {
    // If this fails, they end with the guard.
    if let Ok(nowhere) = OpenOptions::new().write(true).open("/dev/null") {
        let _ = dup2_stdout(&nowhere);
        let _ = dup2_stderr(&nowhere);
    }
}

fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(&fd)?;
    Ok(fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?)
}

/// A running task and all that may end it.
struct TaskWatch {
    control: Stdin,
    /// `false` once the worker has ended; the socket would report that for ever.
    control_open: bool,
    lines: LineBuffer,
    task: Pid,
    /// Readable when the main process has ended; it is reaped only after its group was killed.
    ended: OwnedFd,
    stdin: Option<ChildStdin>,
    params: Vec<u8>,
    params_written: usize,
    start: Start,
    /// When the grace after a SIGTERM is over.
    kill_at: Option<HostInstant>,
    killed: bool,
    stopped: StoppedBy,
    memory: Option<MemoryWatch>,
}

impl TaskWatch {
    fn new(
        task: Pid,
        stdin: Option<ChildStdin>,
        start: Start,
        params: Vec<u8>,
    ) -> io::Result<Self> {
        report(&Report::Started { pid: task.as_raw_pid() });
        let ended = pidfd_open(task, PidfdFlags::empty())?;
        set_nonblocking(io::stdin())?;
        if let Some(pipe) = &stdin {
            set_nonblocking(pipe)?;
        }
        let stdin = stdin.filter(|_| !params.is_empty());
        Ok(Self {
            control: io::stdin(),
            control_open: true,
            lines: LineBuffer::default(),
            task,
            ended,
            stdin,
            params,
            params_written: 0,
            memory: start.limits.memory.map(MemoryWatch::new),
            start,
            kill_at: None,
            killed: false,
            stopped: StoppedBy::Nobody,
        })
    }

    /// Waits for the task's end, or causes it when it must; then clears up and reports.
    fn run(mut self) -> io::Result<Report> {
        while !self.poll_once()? {}
        let status =
            reap_all(self.task).ok_or_else(|| io::Error::other("the task was not reaped"))?;
        Ok(self.final_report(status))
    }

    /// Waits once and handles what is ready; `true` when the main process has ended.
    fn poll_once(&mut self) -> io::Result<bool> {
        let (control, ended, stdin) = self.wait()?;
        if ended {
            return Ok(true);
        }
        // Orders come before the clock: a renewal that has already arrived counts, however late the scheduler
        // ran this process.
        if control {
            self.execute_orders();
        }
        if stdin {
            self.write_params();
        }
        let now = HostInstant::now();
        if self.start.deadline <= now {
            self.kill(StoppedBy::Lease);
        } else if self.kill_at.is_some_and(|at| at <= now) {
            self.kill(StoppedBy::Worker);
        } else if !self.killed && self.memory.as_mut().is_some_and(|memory| memory.exceeded(now)) {
            // If the worker had already ordered the stop, that stays the reason.
            let why = if self.kill_at.is_some() { StoppedBy::Worker } else { StoppedBy::Memory };
            self.kill(why);
        }
        Ok(false)
    }

    /// Returns which of (control socket, end of the task, task's stdin) is ready; none of them after a timeout
    /// or a signal.
    fn wait(&self) -> io::Result<(bool, bool, bool)> {
        let mut fds = vec![PollFd::new(&self.ended, PollFlags::IN)];
        if self.control_open {
            fds.push(PollFd::new(&self.control, PollFlags::IN));
        }
        if let Some(stdin) = &self.stdin {
            fds.push(PollFd::new(stdin, PollFlags::OUT));
        }
        let others = [self.kill_at, self.memory.as_ref().map(MemoryWatch::next)];
        let next_deadline =
            others.into_iter().flatten().fold(self.start.deadline, HostInstant::min);
        let limit = next_deadline.saturating_duration_since(HostInstant::now());
        // After the SIGKILL only the end matters.
        let limit = if self.killed { None } else { Timespec::try_from(limit).ok() };
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let ended = ready.next().unwrap_or(false);
        let control = self.control_open && ready.next().unwrap_or(false);
        Ok((control, ended, ready.next().unwrap_or(false)))
    }

    /// Carries out the worker's orders; a closed socket is an order to kill.
    fn execute_orders(&mut self) {
        let mut buffer = [0; 512];
        let readable = match rustix::io::read(&self.control, &mut buffer) {
            Ok(0) => false,
            Ok(count) => self.lines.push(&buffer[..count]),
            Err(Errno::AGAIN | Errno::INTR) => true,
            Err(_) => false,
        };
        while let Some(line) = self.lines.next_line() {
            match Order::parse(&line) {
                Some(Order::Deadline(at)) => self.start.deadline = at,
                Some(Order::Term) => self.terminate(),
                // An unreadable line comes from a defective worker, so the guard kills as well.
                Some(Order::Kill) | None => self.kill(StoppedBy::Worker),
            }
        }
        if !readable {
            self.control_open = false;
            self.kill(StoppedBy::Lease);
        }
    }

    fn terminate(&mut self) {
        if self.kill_at.is_none() && !self.killed {
            self.stopped = StoppedBy::Worker;
            self.kill_at = Some(HostInstant::now() + self.start.grace);
            signal_task(self.task, Signal::TERM);
        }
    }

    fn kill(&mut self, why: StoppedBy) {
        if !self.killed {
            self.killed = true;
            self.stopped = why;
            self.stdin = None;
            signal_task(self.task, Signal::KILL);
        }
    }

    /// Writes as much of the params to the task's stdin as the pipe accepts.
    fn write_params(&mut self) {
        let Some(pipe) = &mut self.stdin else { return };
        match pipe.write(&self.params[self.params_written..]) {
            Ok(count) => self.params_written += count,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // The task has closed its stdin: it does not need its params.
            Err(_) => self.params_written = self.params.len(),
        }
        if self.params_written == self.params.len() {
            self.stdin = None;
        }
    }

    fn final_report(&self, status: WaitStatus) -> Report {
        let status = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Status::Exited(code),
            (None, signal) => Status::Signalled(signal.unwrap_or_default()),
        };
        // A SIGKILL that came too late leaves another status than its own: the task had ended by itself, and
        // its own status is reported.
        let too_late = self.kill_at.is_none() && status != Status::Signalled(Signal::KILL.as_raw());
        let stopped = if too_late { StoppedBy::Nobody } else { self.stopped };
        Report::Ended { status, stopped }
    }
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
