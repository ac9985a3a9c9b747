//! Kills and reaps all that a task has left behind.
//!
//! A process in an uninterruptible system call cannot be killed; the reaper gives up on it after
//! [`REAP_TIMEOUT`], which is the one case in which a report is sent while something of the task still exists.

use std::fs;
use std::time::Duration;

use rustix::event::{Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, wait,
};

use super::HostInstant;

/// How long the reaper waits for killed processes to end.
const REAP_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause between two checks.
const REAP_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Sends `signal` to the task's main process and to its group.
///
/// Call it only while the main process is not reaped: until then neither number can belong to another process.
/// The main process gets the signal separately because it may have moved to another group.
pub(super) fn signal_task(leader: Pid, signal: Signal) {
    // An error means that no such process is left, which is the signal's purpose.
    let _ = kill_process_group(leader, signal);
    if signal == Signal::KILL {
        let _ = kill_process(leader, signal);
    }
}

/// What reaping a task has shown.
pub(super) struct Reaped {
    /// How the main process ended; `None` if it could not be reaped within [`REAP_TIMEOUT`].
    pub(super) leader: Option<WaitStatus>,
    /// Whether nothing of the task is left.
    pub(super) is_complete: bool,
}

/// Kills the remaining processes of the task and reaps them.
pub(super) fn reap_all(leader: Pid) -> Reaped {
    signal_task(leader, Signal::KILL);
    let give_up_at = HostInstant::now() + REAP_TIMEOUT;
    let mut reaped = Reaped { leader: None, is_complete: false };
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == leader => reaped.leader = Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) if HostInstant::now() < give_up_at => {
                kill_children();
                let _ = poll(&mut [], Some(&REAP_PAUSE));
            }
            Err(Errno::CHILD) => {
                reaped.is_complete = true;
                return reaped;
            }
            Ok(None) | Err(_) => return reaped,
        }
    }
}

/// Kills the guard's present children: the leftovers whose parents have died.
///
/// Their own children become the guard's children in turn, and the next check finds them. None of these pids
/// can belong to another process, because only the guard reaps its children.
fn kill_children() {
    let Ok(children) = fs::read_to_string("/proc/thread-self/children") else { return };
    for pid in children.split_whitespace().filter_map(|word| word.parse().ok()) {
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
