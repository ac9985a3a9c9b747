//! Kills the processes that a lost guard has left behind.
//!
//! Every guard leads a session whose id is the guard's pid and which all its descendants share, however early
//! the guard was lost (perhaps before it could report the process that it had started). So the worker can find
//! them all in `/proc`; only a descendant that has begun another session escapes this last resort.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::time::timeout;

/// The most searches of the process table.
const MAX_SEARCHES: u32 = 100;

/// Pause between two searches, in which the kernel carries out the kills.
const SEARCH_PAUSE: Duration = Duration::from_millis(10);

/// Time limit of the whole.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Kills every process of the guard's session and waits until none is left, within limits.
pub(super) async fn kill_session(guard: Pid) {
    let searching = async {
        for _ in 0..MAX_SEARCHES {
            let found = tokio::task::spawn_blocking(move || kill_members(guard)).await;
            if found.is_ok_and(|members| members == 0) {
                return;
            }
            tokio::time::sleep(SEARCH_PAUSE).await;
        }
    };
    // A process that survives the limit is stuck in the kernel.
    let _ = timeout(KILL_TIMEOUT, searching).await;
}

/// Kills the session's members once; returns how many there were.
fn kill_members(session: Pid) -> usize {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw))
        .filter(|&pid| kill_member(pid, session))
        .count()
}

/// Kills `pid` if it lives in `session`; `false` if it does not.
fn kill_member(pid: Pid, session: Pid) -> bool {
    if !is_member(pid, session) {
        return false;
    }
    // The pid may belong to another process by now. The handle cannot: if the process is still a member after
    // the handle was opened, the handle is the member's.
    if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty())
        && is_member(pid, session)
    {
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
    true
}

fn is_member(pid: Pid, session: Pid) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()))
        .is_ok_and(|stat| lives_in(&stat, session))
}

/// Whether a line of `/proc/<pid>/stat` describes a living process of `session`.
fn lives_in(stat: &str, session: Pid) -> bool {
    // The name in parentheses may contain anything, even `)`.
    let Some((_, fields)) = stat.rsplit_once(") ") else { return false };
    let mut fields = fields.split(' ');
    let state = fields.next().unwrap_or_default();
    let number = fields.nth(2).and_then(|field| field.parse().ok()).and_then(Pid::from_raw);
    !matches!(state, "Z" | "X") && number == Some(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_stat_tells_the_session_of_the_living() {
        let seven = Pid::from_raw(7).unwrap();
        assert!(lives_in("12 (a) b) R 1 9 7 0 -1 4194304", seven));
        assert!(!lives_in("12 (a) b) Z 1 9 7 0 -1 4194304", seven));
        assert!(!lives_in("12 (7) S 7 7 8 0", seven));
        assert!(!lives_in("", seven));
    }
}
