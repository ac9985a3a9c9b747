//! Which processes belong to a private server, and signals to all of them.
//!
//! A process belongs to a server exactly if its working directory *is* the server's run folder.
//! That also finds processes that a process group or a parent's list of children misses: PostgreSQL
//! puts each backend into a separate session, RabbitMQ is a shell script around a virtual machine
//! with helpers, and children of a killed parent get another parent. It also survives a reused
//! process id, which a pid file does not. The price: a shell that a person left inside a run folder
//! counts as part of the server. Nobody has a reason to be there; the logs are one folder above.
//!
//! Reads `/proc`, so it knows Linux only.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

use super::error::ServersError;

/// How long a process may take to disappear after SIGKILL. It takes microseconds unless the kernel is
/// waiting for a disk.
const KILL_DEADLINE: Duration = Duration::from_secs(10);

/// The time between two readings of `/proc`.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Whether processes can be found here at all.
pub(super) fn can_be_found() -> bool {
    Path::new("/proc/self/cwd").exists()
}

/// The processes whose working directory is `run_folder`. Zombies have none and are not listed.
pub(super) fn belonging_to(run_folder: &Path) -> Vec<Pid> {
    let Ok(run_folder) = run_folder.canonicalize() else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|c| c == run_folder))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .collect()
}

/// Sends `signal` to every process of `run_folder`; returns the processes.
///
/// A process that ends between the reading and the signal is no error, since it is gone as intended.
pub(super) fn signal_all(run_folder: &Path, signal: Signal) -> Vec<Pid> {
    let pids = belonging_to(run_folder);
    for pid in &pids {
        kill_process(*pid, signal).ok();
    }
    pids
}

/// SIGKILLs every process of `run_folder`, repeatedly until none is left, since one may have forked
/// between the reading and the signal, and waits until the kernel has removed all of them.
///
/// The second part frees their ports. A dying process gives up its working directory before its
/// sockets, and its first thread is a zombie while others still hold them.
pub(super) async fn kill_all(run_folder: &Path) -> Result<(), ServersError> {
    let deadline = Instant::now() + KILL_DEADLINE;
    let mut dying = Vec::new();
    loop {
        let signalled = signal_all(run_folder, Signal::KILL);
        let is_last_look = signalled.is_empty();
        dying.extend(signalled);
        dying.retain(|pid| has_running_thread(*pid));
        if is_last_look && dying.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(ServersError::Program {
                action: format!("kill the processes of {}", run_folder.display()),
                reason: "some are still there after SIGKILL; the kernel may wait for a disk".into(),
            });
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Whether a thread of the process is more than a zombie.
fn has_running_thread(pid: Pid) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok())
        // The state follows the name, which is in parentheses and may itself contain some.
        .filter_map(|stat| stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned()))
        .any(|rest| !rest.starts_with(['Z', 'X']))
}
