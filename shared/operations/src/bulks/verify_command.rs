//! Runs a command that checks whether the effect of a failed task has happened.
//!
//! `sh -c` runs it on the operator's machine, with the execution's JSON on standard input and a task's variables in
//! its environment. Its exit status is the answer: 0, it has happened; 1, it has not. Any other status, a signal or a
//! timeout is no answer, and the execution is left as it is.

use std::process::Stdio;
use std::time::Duration;

use chrono::SecondsFormat;
use rustix::process::{Pid, Signal, kill_process_group};
use sexton_model::verify_task::VerifyAnswer;
use sexton_store::executions::Execution;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long a command may take.
pub const COMMAND_TIMEOUT: Duration = Duration::from_mins(1);

/// The shell's process group: a drop kills it before the shell is reaped, so that the number still belongs to it.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn new(child: &Child) -> Self {
        Self(child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw))
    }

    /// Keeps the group, because the shell has ended by itself.
    const fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs `command` for an execution. A drop kills it, with all its children.
pub async fn run_command(command: &str, execution: &Execution) -> VerifyAnswer {
    run_command_within(command, execution, COMMAND_TIMEOUT).await
}

async fn run_command_within(command: &str, execution: &Execution, limit: Duration) -> VerifyAnswer {
    let unknown = |text: String| VerifyAnswer::Unknown(text);
    let Ok(document) = serde_json::to_vec(execution) else {
        return unknown("the execution is no JSON".to_owned());
    };
    let mut shell = Command::new("sh");
    // The same variables as for a task.
    match &execution.target {
        Some(target) => shell.env("SEXTON_TARGET", target),
        None => shell.env_remove("SEXTON_TARGET"),
    };
    let scheduled_for = execution.scheduled_for.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let spawned = shell
        .args(["-c", command])
        .env("SEXTON_EXECUTION_ID", execution.id.to_string())
        .env("SEXTON_ATTEMPT", execution.attempt.to_string())
        .env("SEXTON_JOB", &execution.job_name)
        .env("SEXTON_EXECUTION_KEY", &execution.execution_key)
        .env("SEXTON_SCHEDULED_FOR", scheduled_for)
        .env("SEXTON_IDEMPOTENCY_KEY", &execution.idempotency_key)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => return unknown(format!("it cannot be started: {error}")),
    };
    let mut group = ProcessGroup::new(&child);
    let stdin = child.stdin.take();
    let answer = async {
        if let Some(mut stdin) = stdin {
            // A command that reads no input closes it early.
            let _ = stdin.write_all(&document).await;
        }
        child.wait().await
    };
    match timeout(limit, answer).await {
        Ok(Ok(status)) => {
            group.disarm();
            match status.code() {
                Some(0) => VerifyAnswer::Happened,
                Some(1) => VerifyAnswer::NotYet,
                _ => unknown(format!(
                    "it ended with {status}; 0 says that it has happened, 1 that it has not"
                )),
            }
        }
        Ok(Err(error)) => unknown(format!("it cannot be waited for: {error}")),
        Err(_) => {
            drop(group);
            let _ = child.wait().await;
            unknown(format!("it gave no answer within {} s", limit.as_secs()))
        }
    }
}
