//! The lines that worker and guard exchange over the control socket.
//!
//! Text, one message per line, so that people can read a trace of the socket:
//!
//! | direction | line | meaning |
//! |---|---|---|
//! | worker → guard | `start <setup bytes> <stdin bytes> <deadline ns> <grace ms> <option>…` | first for each task; the [setup](super::Setup) and the bytes for the task's stdin follow it |
//! | worker → guard | `deadline <ns>` | the lease was renewed: its new end |
//! | worker → guard | `term` | SIGTERM to the task's group, SIGKILL after the grace |
//! | worker → guard | `kill` | SIGKILL at once |
//! | guard → worker | `started <pid>` | the task runs; its group has the same number |
//! | guard → worker | `exited <code> <stopped>` | last for each task: its own exit code |
//! | guard → worker | `signalled <signal> <stopped>` | last for each task: a signal ended it |
//! | guard → worker | `refused <why> <text>` | last: the task was never started, and the guard ends |
//!
//! `<stopped>` is `no` when the task ended by itself, `asked` after `term` or `kill`, `lease` when its lease
//! ran out, `memory` when it exceeded its memory limit, `kernel` when the kernel's out-of-memory killer ended
//! it. ` untouched` after it says that
//! the task left its folder empty, ` retires` that the guard takes no further task. An order that arrives after the last report is
//! ignored. An `<option>` is `memory=<bytes>`, `cpu_ms=<ms>`, `files=<number>` or `user=<uid>:<gid>`; `<why>` is
//! `lease`, `retry` or `permanent`. Both ends are the same binary, so there is no version to negotiate.

use std::fmt;
use std::time::Duration;

use super::setup::SETUP_MAX_BYTES;
use super::{HostInstant, TaskLimits};

/// Longest line either side may send, in bytes.
pub(crate) const LINE_MAX_BYTES: usize = 4096;

/// The most bytes for a task's stdin.
pub(crate) const STDIN_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Shells add this to the number of the signal that ended a program, and exit with the sum.
pub(crate) const SHELL_SIGNAL_BASE: i32 = 128;

/// In the last report for a task that left its folder empty.
const UNTOUCHED: &str = " untouched";

/// Ends the last report of a guard that takes no further task.
const RETIRES: &str = " retires";

/// The worker's first line for a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) setup_bytes: usize,
    pub(crate) stdin_bytes: usize,
    pub(crate) deadline: HostInstant,
    pub(crate) grace: Duration,
    pub(crate) limits: TaskLimits,
    /// User and group id of the task.
    pub(crate) user: Option<(u32, u32)>,
}

/// An order of the worker to a running guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Deadline(HostInstant),
    Term,
    Kill,
}

/// A report of the guard to the worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    Started {
        pid: i32,
    },
    Ended {
        status: Status,
        stopped: StoppedBy,
        /// Whether the folder of the task is as it was.
        untouched: bool,
        /// Whether the guard takes no further task.
        retires: bool,
    },
    Refused {
        why: StartRefusal,
        text: String,
    },
}

/// How the task's main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Exited(i32),
    Signalled(i32),
}

/// Who or what ended the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoppedBy {
    Nobody,
    Worker,
    Lease,
    /// The guard, because the task exceeded its memory limit.
    Memory,
    /// The kernel's out-of-memory killer.
    Kernel,
}

/// Why a task was not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartRefusal {
    /// The lease was over before the program could be started.
    Lease,
    /// The host could not start it now.
    Retry,
    /// It can never be started with this setup.
    Permanent,
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (deadline, grace) = (self.deadline.as_nanos(), self.grace.as_millis());
        write!(f, "start {} {} {deadline} {grace}", self.setup_bytes, self.stdin_bytes)?;
        if let Some(bytes) = self.limits.memory {
            write!(f, " memory={bytes}")?;
        }
        if let Some(time) = self.limits.cpu_time {
            write!(f, " cpu_ms={}", time.as_millis())?;
        }
        if let Some(number) = self.limits.open_files {
            write!(f, " files={number}")?;
        }
        if let Some((uid, gid)) = self.user {
            write!(f, " user={uid}:{gid}")?;
        }
        Ok(())
    }
}

impl Start {
    /// Parses the first line; `None` if it is invalid, or announces more than [`SETUP_MAX_BYTES`] or
    /// [`STDIN_MAX_BYTES`].
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("start ")?.split(' ');
        let setup_bytes = words.next()?.parse().ok().filter(|&n| n <= SETUP_MAX_BYTES)?;
        let stdin_bytes = words.next()?.parse().ok().filter(|&n| n <= STDIN_MAX_BYTES)?;
        let deadline = HostInstant::from_nanos(words.next()?.parse().ok()?);
        let grace = Duration::from_millis(words.next()?.parse().ok()?);
        let (mut limits, mut user) = (TaskLimits::default(), None);
        for word in words {
            let (option, value) = word.split_once('=')?;
            match option {
                "memory" => limits.memory = Some(value.parse().ok()?),
                "cpu_ms" => limits.cpu_time = Some(Duration::from_millis(value.parse().ok()?)),
                "files" => limits.open_files = Some(value.parse().ok()?),
                "user" => {
                    let (uid, gid) = value.split_once(':')?;
                    user = Some((uid.parse().ok()?, gid.parse().ok()?));
                }
                _ => return None,
            }
        }
        Some(Self { setup_bytes, stdin_bytes, deadline, grace, limits, user })
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadline(at) => write!(f, "deadline {}", at.as_nanos()),
            Self::Term => f.write_str("term"),
            Self::Kill => f.write_str("kill"),
        }
    }
}

impl Order {
    /// Parses an order; `None` if the line is invalid.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        match line {
            "term" => Some(Self::Term),
            "kill" => Some(Self::Kill),
            _ => {
                let nanos = line.strip_prefix("deadline ")?.parse().ok()?;
                Some(Self::Deadline(HostInstant::from_nanos(nanos)))
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { pid } => write!(f, "started {pid}"),
            Self::Ended { status, stopped, untouched, retires } => {
                match status {
                    Status::Exited(code) => write!(f, "exited {code} ")?,
                    Status::Signalled(signal) => write!(f, "signalled {signal} ")?,
                }
                f.write_str(match stopped {
                    StoppedBy::Nobody => "no",
                    StoppedBy::Worker => "asked",
                    StoppedBy::Lease => "lease",
                    StoppedBy::Memory => "memory",
                    StoppedBy::Kernel => "kernel",
                })?;
                f.write_str(if *untouched { UNTOUCHED } else { "" })?;
                f.write_str(if *retires { RETIRES } else { "" })
            }
            Self::Refused { why, text } => {
                let why = match why {
                    StartRefusal::Lease => "lease",
                    StartRefusal::Retry => "retry",
                    StartRefusal::Permanent => "permanent",
                };
                // A line break in the text would end the message early.
                let text: String = text.chars().filter(|c| !c.is_control()).take(1000).collect();
                write!(f, "refused {why} {text}")
            }
        }
    }
}

impl Report {
    /// Parses a report; `None` if the line is invalid.
    pub(crate) fn parse<'l>(line: &'l str) -> Option<Self> {
        let (verb, rest) = line.split_once(' ')?;
        if verb == "started" {
            return Some(Self::Started { pid: rest.parse().ok().filter(|&pid| pid > 1)? });
        }
        let (value, tail) = rest.split_once(' ')?;
        if verb == "refused" {
            let why = match value {
                "lease" => StartRefusal::Lease,
                "retry" => StartRefusal::Retry,
                "permanent" => StartRefusal::Permanent,
                _ => return None,
            };
            return Some(Self::Refused { why, text: tail.to_owned() });
        }
        let status = match verb {
            "exited" => Status::Exited(value.parse().ok()?),
            "signalled" => Status::Signalled(value.parse().ok()?),
            _ => return None,
        };
        let flag = |tail: &'l str, word| match tail.strip_suffix(word) {
            Some(tail) => (tail, true),
            None => (tail, false),
        };
        let (tail, retires) = flag(tail, RETIRES);
        let (tail, untouched) = flag(tail, UNTOUCHED);
        let stopped = match tail {
            "no" => StoppedBy::Nobody,
            "asked" => StoppedBy::Worker,
            "lease" => StoppedBy::Lease,
            "memory" => StoppedBy::Memory,
            "kernel" => StoppedBy::Kernel,
            _ => return None,
        };
        Some(Self::Ended { status, stopped, untouched, retires })
    }
}

/// Assembles lines from the pieces that a socket delivers.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer(Vec<u8>);

impl LineBuffer {
    /// Adds bytes; `false` when a line has grown beyond [`LINE_MAX_BYTES`].
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        self.extend(bytes);
        !self.is_overlong()
    }

    /// Adds bytes that need not be lines.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Returns whether a line has grown beyond [`LINE_MAX_BYTES`] without an end.
    pub(crate) fn is_overlong(&self) -> bool {
        self.0.len() > LINE_MAX_BYTES && !self.0.contains(&b'\n')
    }

    /// Takes the next whole line, without its end; invalid UTF-8 is replaced.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        let end = self.0.iter().position(|&byte| byte == b'\n')?;
        let line = String::from_utf8_lossy(&self.0[..end]).into_owned();
        self.0.drain(..=end);
        Some(line)
    }

    /// Takes `count` bytes; `None` if fewer have arrived.
    pub(crate) fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        let rest = (self.0.len() >= count).then(|| self.0.split_off(count))?;
        Some(std::mem::replace(&mut self.0, rest))
    }
}

#[cfg(test)]
mod tests;
