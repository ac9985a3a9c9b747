//! A program that is run to its end.

use std::fmt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::process::Command;
use tokio::time::timeout;

use super::binaries;
use super::environment::Environment;

/// A command takes a tenth of a second; a slow machine and a migration are allowed for.
pub(super) const DEADLINE: Duration = Duration::from_mins(1);

/// What a command answered.
#[derive(Debug, Clone)]
pub struct CommandOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

impl fmt::Display for CommandOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        for stream in [&self.stdout, &self.stderr] {
            if !stream.trim().is_empty() {
                write!(f, "\n{}", stream.trim_end())?;
            }
        }
        Ok(())
    }
}

/// Runs `binary` in `folder`. It is killed if the caller gives up waiting.
pub(super) async fn run(
    binary: &str,
    args: &[&str],
    environment: &Environment,
    folder: &Path,
) -> Result<CommandOutput> {
    let mut command = Command::new(binaries::find(binary)?);
    command
        .args(args)
        .env_clear()
        .envs(environment.iter())
        .current_dir(folder)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = timeout(DEADLINE, command.output())
        .await
        .with_context(|| format!("{binary} {args:?} did not end within {DEADLINE:?}"))?
        .with_context(|| format!("failed to run {binary}"))?;
    Ok(CommandOutput {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
