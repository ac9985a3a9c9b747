//! The worker's end of a guard: starts it, passes the orders on, receives how the task ended.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::fchown;
use std::time::Duration;

use rustix::process::Pid;
use sexton_service::fault;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, timeout};

use super::guard_pool::IdleGuard;
use super::session_kill::kill_session;
use super::spec::CommandTask;
use super::verdict::{FinalReport, StopRequest};
use crate::executor::{HostInstant, StopReason, TaskControl};
use crate::guard::fd_passing::send_with_files;
use crate::guard::protocol::{LineBuffer, Order, Report, STDIN_MAX_BYTES, Start, StartRefusal};

/// How long a guard may take to read its assignment.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How long after the last SIGKILL a guard may take to report before it is given up.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// The input of a guard at its start.
pub(super) struct Assignment<'a> {
    pub(super) task: &'a CommandTask,
    /// The output of [`Setup::encode`](crate::guard::Setup::encode).
    pub(super) setup: Vec<u8>,
    /// The task's standard input: its params, or the catalogue's text.
    pub(super) stdin: Vec<u8>,
    pub(super) timeout: Duration,
}

/// A running guard.
pub(super) struct RunningGuard {
    guard: IdleGuard,
    /// The writing ends of the task's output, until they are sent.
    outputs: Vec<OwnedFd>,
    lines: LineBuffer,
    /// Whether the task has started.
    started: bool,
    /// Whether the guard takes further tasks.
    reusable: bool,
    /// Whether the task has left its folder empty.
    untouched: bool,
}

/// The pipes of the task's output.
pub(super) struct Pipes {
    pub(super) stdout: Receiver,
    pub(super) stderr: Receiver,
}

impl RunningGuard {
    /// Makes the pipes of the output; the task itself starts when [`supervise`](Self::supervise) assigns it.
    ///
    /// # Errors
    ///
    /// The reason why the host cannot start a process, as the refusal that the task ends with.
    pub(super) fn start(
        guard: IdleGuard,
        assignment: &Assignment<'_>,
    ) -> Result<(Self, Pipes), FinalReport> {
        if assignment.stdin.len() > STDIN_MAX_BYTES {
            let text = format!("the params exceed {STDIN_MAX_BYTES} bytes");
            return Err(FinalReport::Refused { why: StartRefusal::Permanent, text });
        }
        Self::prepare(guard, assignment).map_err(|error| {
            let text = format!("cannot make pipes for the task's output: {error}");
            FinalReport::Refused { why: StartRefusal::Retry, text }
        })
    }

    fn prepare(guard: IdleGuard, assignment: &Assignment<'_>) -> io::Result<(Self, Pipes)> {
        let (stdout, stdout_end) = std::io::pipe()?;
        let (stderr, stderr_end) = std::io::pipe()?;
        let outputs = vec![OwnedFd::from(stdout_end), OwnedFd::from(stderr_end)];
        if let Some(user) = &assignment.task.user {
            // A task that opens /dev/stderr does so with its own rights. It has not started yet.
            for output in &outputs {
                fchown(output, Some(user.uid), Some(user.gid))?;
            }
        }
        fault::point("worker.guarded");
        let pipes = Pipes {
            stdout: Receiver::from_owned_fd(stdout.into())?,
            stderr: Receiver::from_owned_fd(stderr.into())?,
        };
        Ok((Self::new(guard, outputs), pipes))
    }

    fn new(guard: IdleGuard, outputs: Vec<OwnedFd>) -> Self {
        Self {
            guard,
            outputs,
            lines: LineBuffer::default(),
            started: false,
            reusable: false,
            untouched: false,
        }
    }

    /// Assigns the task and supervises it until its end; also returns why it was stopped.
    ///
    /// Dropping the future closes the socket, and the guard kills the task.
    pub(super) async fn supervise(
        &mut self,
        assignment: &Assignment<'_>,
        mut control: TaskControl,
    ) -> (FinalReport, Option<StopRequest>) {
        if let Err(text) = self.assign(assignment, &control).await {
            self.kill_all().await;
            return (FinalReport::NoReport(text), None);
        }
        let mut orders = GuardOrders::new(assignment, &control);
        loop {
            let deadline = orders.next_deadline();
            let step = tokio::select! {
                // After a stall of this process everything is due at once: reports that the guard has sent by
                // then take precedence over the clock.
                biased;
                report = self.read_report() => match report {
                    Ok(Report::Started { .. }) => {
                        self.started = true;
                        fault::point("worker.started");
                        Ok(())
                    }
                    Ok(Report::Ended { status, stopped, untouched, retires }) => {
                        (self.reusable, self.untouched) = (!retires, untouched);
                        return (FinalReport::Ended { status, stopped }, orders.stop_request);
                    }
                    Ok(Report::Refused { why, text }) if !self.started => {
                        return (FinalReport::Refused { why, text }, orders.stop_request);
                    }
                    Ok(Report::Refused { text, .. }) | Err(text) => Err(text),
                },
                () = control.changed() => orders.handle_change(&control, &self.guard.control),
                () = tokio::time::sleep_until(deadline) => orders.handle_deadline(&self.guard.control),
            };
            if let Err(text) = step {
                self.kill_all().await;
                return (FinalReport::NoReport(text), orders.stop_request);
            }
        }
    }

    async fn assign(
        &mut self,
        assignment: &Assignment<'_>,
        control: &TaskControl,
    ) -> Result<(), String> {
        let deadline = control.lease();
        let (setup_bytes, stdin_bytes) = (assignment.setup.len(), assignment.stdin.len());
        let CommandTask { grace, limits, ref user, .. } = *assignment.task;
        let user = user.as_ref().map(|user| (user.uid, user.gid));
        let start = Start { setup_bytes, stdin_bytes, deadline, grace, limits, user };
        let mut first = format!("{start}\n").into_bytes();
        first.extend_from_slice(&assignment.setup);
        first.extend_from_slice(&assignment.stdin);
        let outputs = std::mem::take(&mut self.outputs);
        let lock_file = control.instance_lock();
        let mut files: Vec<_> = outputs.iter().map(OwnedFd::as_fd).collect();
        files.extend(lock_file.as_deref().map(|lock_file| lock_file.as_fd()));
        let telling = async {
            let sent = send_with_files(&self.guard.control, &first, &files).await?;
            self.guard.control.write_all(&first[sent..]).await
        };
        match timeout(START_TIMEOUT, telling).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("the task's guard ended at its start: {error}")),
            Err(_) => Err("the task's guard did not start in time".to_owned()),
        }
    }

    /// Waits for the guard's next report. Cancellation safe: bytes already read stay in the buffer.
    async fn read_report(&mut self) -> Result<Report, String> {
        loop {
            if let Some(line) = self.lines.next_line() {
                return Report::parse(&line)
                    .ok_or_else(|| "the task's guard sent an unreadable message".to_owned());
            }
            let mut buffer = [0; 512];
            match self.guard.control.read(&mut buffer).await {
                Ok(0) => return Err("the task's guard was killed".to_owned()),
                Ok(count) if self.lines.push(&buffer[..count]) => {}
                Ok(_) => return Err("the task's guard sent a message that is too long".to_owned()),
                Err(error) => return Err(format!("the task's guard was lost: {error}")),
            }
        }
    }

    /// Kills the task in the guard's place, and then the guard.
    ///
    /// The task's own pid is useless for that: the guard may have reaped it, and the pid may belong to another
    /// process by now. The guard's pid cannot, until this process has reaped the guard.
    async fn kill_all(&mut self) {
        // A guard that still lives is frozen or defective: it must not start anything more.
        let guard = self.guard.process.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let _ = self.guard.process.start_kill();
        if let Some(guard) = guard {
            kill_session(guard).await;
        }
    }

    /// Returns whether the task has left its folder empty.
    pub(super) const fn has_untouched_folder(&self) -> bool {
        self.untouched
    }

    /// Returns the guard for the next task, or waits until it is reaped, within a time limit.
    pub(super) async fn finish(self) -> Option<IdleGuard> {
        if self.reusable {
            return Some(self.guard);
        }
        let IdleGuard { mut process, control, .. } = self.guard;
        drop(control);
        // After the limit the runtime reaps it in the background.
        let _ = timeout(REPORT_TIMEOUT, process.wait()).await;
        None
    }
}

/// The orders that the guard has received, and those that are due.
struct GuardOrders {
    stop_request: Option<StopRequest>,
    grace: Duration,
    lease: HostInstant,
    term_sent: bool,
    kill_sent: bool,
    timeout_at: Instant,
    /// When a guard that was ordered to stop the task must have reported.
    give_up_at: Option<Instant>,
}

impl GuardOrders {
    fn new(assignment: &Assignment<'_>, control: &TaskControl) -> Self {
        // A timeout beyond the clock's range counts as no timeout.
        let far = Duration::from_hours(365 * 24);
        Self {
            stop_request: None,
            grace: assignment.task.grace,
            lease: control.lease(),
            term_sent: false,
            kill_sent: false,
            timeout_at: Instant::now() + assignment.timeout.min(far),
            give_up_at: None,
        }
    }

    /// Returns when to check the clock again.
    fn next_deadline(&self) -> Instant {
        let lease = Instant::now() + self.lease.saturating_duration_since(HostInstant::now());
        let lease_end = if self.kill_sent { None } else { Some(lease) };
        let timeout = if self.term_sent || self.kill_sent { None } else { Some(self.timeout_at) };
        let earliest = [lease_end, timeout, self.give_up_at].into_iter().flatten().min();
        earliest.unwrap_or(lease)
    }

    /// Handles a deadline: the timeout, the lease's end, or the guard's time to report.
    fn handle_deadline(&mut self, control: &UnixStream) -> Result<(), String> {
        let now = Instant::now();
        if self.give_up_at.is_some_and(|at| at <= now) {
            return Err("the task's guard did not answer".to_owned());
        }
        if self.lease <= HostInstant::now() {
            // The guard handles the end of the lease by itself; this order detects a guard that cannot.
            return self.stop(StopRequest::Stop(StopReason::LeaseLost), true, control);
        }
        if self.timeout_at <= now {
            return self.stop(StopRequest::Timeout, false, control);
        }
        Ok(())
    }

    /// Handles a change by the owner: a renewed lease or an order to stop.
    fn handle_change(&mut self, terms: &TaskControl, control: &UnixStream) -> Result<(), String> {
        if self.lease != terms.lease() {
            self.lease = terms.lease();
            send(control, Order::Deadline(self.lease))?;
        }
        match terms.stop_order() {
            Some(order) => self.stop(StopRequest::Stop(order.reason), order.at_once, control),
            None => Ok(()),
        }
    }

    fn stop(
        &mut self,
        stop_request: StopRequest,
        at_once: bool,
        control: &UnixStream,
    ) -> Result<(), String> {
        // The guard keeps the first reason; only a lost lease changes what the worker may record.
        if self.stop_request.is_none() || stop_request == StopRequest::Stop(StopReason::LeaseLost) {
            self.stop_request = Some(stop_request);
        }
        let order = if at_once && !self.kill_sent {
            self.kill_sent = true;
            self.give_up_at = Some(Instant::now() + REPORT_TIMEOUT);
            Order::Kill
        } else if !at_once && !self.term_sent && !self.kill_sent {
            self.term_sent = true;
            self.give_up_at = Some(Instant::now() + self.grace + REPORT_TIMEOUT);
            Order::Term
        } else {
            return Ok(());
        };
        send(control, order)?;
        fault::point("worker.stopping");
        Ok(())
    }
}

/// Sends an order without waiting: a guard that lets the socket's buffer fill up does not work.
fn send(control: &UnixStream, order: Order) -> Result<(), String> {
    let line = format!("{order}\n");
    match control.try_write(line.as_bytes()) {
        Ok(count) if count == line.len() => Ok(()),
        // The guard may have reported and ended; its report can still be read.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Ok(_) | Err(_) => Err("the task's guard takes no orders".to_owned()),
    }
}

#[cfg(test)]
mod tests;
