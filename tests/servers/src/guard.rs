//! The process that outlives its owner in order to stop what the owner started.
//!
//! Destructors do not run for statics, after a second Ctrl-C, or on SIGKILL; the end of a pipe does
//! arrive in each of those cases. So every private server has a guard, a few lines of shell that read
//! from a pipe which only the owner holds, and end the server when the pipe ends. An orderly shutdown
//! takes the same way: there is one path, and every run exercises it.
//!
//! If guard and owner are killed together (a container torn down, a power cut), the next start
//! sweeps what is left: see [`super::folder`].

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use super::error::ServersError;

const SCRIPT: &str = include_str!("guard.sh");

/// The guard gives a server two seconds to end by itself, then kills; the rest is for `docker`.
const END_DEADLINE: Duration = Duration::from_secs(40);

/// The owner's end of the lifeline. Dropping it stops the server in the background.
#[derive(Debug)]
pub(super) struct Guard {
    process: Child,
}

impl Guard {
    /// Starts the guard of the server in `folder`, to be ended with `signal` (a name without `SIG`).
    /// `removal`, if any, is a command and its arguments that the guard runs first.
    pub(super) fn watch<A: AsRef<OsStr>>(
        folder: &Path,
        signal: &str,
        removal: &[A],
    ) -> Result<Self, ServersError> {
        let process = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "sexton-server-guard"])
            .arg(folder)
            .arg(signal)
            .args(removal)
            .current_dir("/")
            .stdin(Stdio::piped())
            // Not the owner's output: a reader of that pipe would wait for the guard.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C goes to the terminal's foreground group; the guard must live to see its effect.
            .process_group(0)
            .spawn()
            .map_err(ServersError::file("start a shell to guard", folder))?;
        Ok(Self { process })
    }

    /// Lets the guard do its work and waits for its end.
    pub(super) async fn end(mut self) -> Result<(), ServersError> {
        drop(self.process.stdin.take());
        let deadline = Instant::now() + END_DEADLINE;
        while let Ok(None) = self.process.try_wait() {
            if Instant::now() > deadline {
                return Err(ServersError::Program {
                    action: "stop a private server".into(),
                    reason: format!("its guard (process {}) did not end", self.process.id()),
                });
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }
}
