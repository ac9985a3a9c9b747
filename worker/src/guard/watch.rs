//! Watches a running task: its end, its lease, its limits, and the worker's orders.

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ChildStdin;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

use super::HostInstant;
use super::control::Control;
use super::memory::MemoryWatch;
use super::protocol::{Order, Report, Start, Status, StoppedBy};
use super::reaper::{reap_all, signal_task};

/// The processor time after which a guard retires. The kernel counts it against the soft limit of a task's start
/// (see [`LoweredLimits`](super::limits::LoweredLimits)), which is a second at least.
const MAX_CPU_TIME: Duration = Duration::from_millis(250);

fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(&fd)?;
    Ok(fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?)
}

/// A running task and all that may end it.
pub(super) struct TaskWatch<'c> {
    control: &'c mut Control,
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

impl<'c> TaskWatch<'c> {
    pub(super) fn new(
        control: &'c mut Control,
        task: Pid,
        stdin: Option<ChildStdin>,
        start: Start,
        params: Vec<u8>,
    ) -> io::Result<Self> {
        let ended = pidfd_open(task, PidfdFlags::empty())?;
        if let Some(pipe) = &stdin {
            set_nonblocking(pipe)?;
        }
        let stdin = stdin.filter(|_| !params.is_empty());
        Ok(Self {
            control,
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
    pub(super) fn run(mut self) -> io::Result<Report> {
        // They may have arrived with the last bytes of the assignment; the socket would not show them.
        self.execute_orders();
        while !self.poll_once()? {}
        let reaped = reap_all(self.task);
        let status = reaped.leader.ok_or_else(|| io::Error::other("the task was not reaped"))?;
        // What could not be reaped must not be taken for a part of the next task.
        Ok(self.final_report(status, !reaped.is_complete || has_served_enough()))
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
        let socket = self.control.socket();
        if self.control.is_open() {
            fds.push(PollFd::new(&socket, PollFlags::IN));
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
        let control = self.control.is_open() && ready.next().unwrap_or(false);
        Ok((control, ended, ready.next().unwrap_or(false)))
    }

    /// Carries out the worker's orders; a closed socket is an order to kill.
    fn execute_orders(&mut self) {
        self.control.receive();
        while let Some(line) = self.control.next_line() {
            match Order::parse(&line) {
                Some(Order::Deadline(at)) => self.start.deadline = at,
                Some(Order::Term) => self.terminate(),
                // An unreadable line comes from a defective worker, so the guard kills as well.
                Some(Order::Kill) | None => self.kill(StoppedBy::Worker),
            }
        }
        if !self.control.is_open() || self.control.is_overlong() {
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

    fn final_report(&self, status: WaitStatus, retires: bool) -> Report {
        let status = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Status::Exited(code),
            (None, signal) => Status::Signalled(signal.unwrap_or_default()),
        };
        // A SIGKILL that came too late leaves another status than its own: the task had ended by itself, and
        // its own status is reported.
        let too_late = self.kill_at.is_none() && status != Status::Signalled(Signal::KILL.as_raw());
        let stopped = if too_late { StoppedBy::Nobody } else { self.stopped };
        Report::Ended { status, stopped, untouched: false, retires }
    }
}

/// Returns whether this process has used so much processor time that a task's limit could hit it.
fn has_served_enough() -> bool {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(used).is_ok_and(|used| used >= MAX_CPU_TIME)
}
