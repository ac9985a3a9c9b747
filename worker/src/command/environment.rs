//! What a task finds in its environment.
//!
//! The worker's own environment without what is meant for the worker alone (its secrets and
//! settings), and the `SEXTON_*` variables that describe the attempt. Variables that other programs
//! define (`PATH`, `PGPASSWORD` …) are passed on: who must keep them from tasks does not give them
//! to the worker.

use std::ffi::{OsStr, OsString};

use chrono::{DateTime, SecondsFormat, Utc};

use crate::executor::TaskRun;

/// Settings of the worker that bear none of the [`OWN_PREFIXES`].
const OWN_VARIABLES: [&str; 2] = ["DATABASE_URL", "AMQP_URL"];

/// Beginnings of the names of the worker's settings. `SEXTON_` also keeps a task that is started by
/// a task from being taken for its parent's attempt.
const OWN_PREFIXES: [&[u8]; 3] = [b"SEXTON_", b"WORKER_", b"CRON_"];

/// The variables that every task of this worker inherits.
pub(super) fn inherited(
    all: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    all.filter(|(name, _)| !is_own(name)).collect()
}

fn is_own(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    OWN_VARIABLES.iter().any(|own| name == *own)
        || OWN_PREFIXES.iter().any(|prefix| bytes.starts_with(prefix))
}

/// The variables that describe `task`.
pub(super) fn describing(task: &TaskRun) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("SEXTON_EXECUTION_ID", task.execution_id.to_string()),
        ("SEXTON_ATTEMPT", task.attempt.to_string()),
        ("SEXTON_JOB", task.job.clone()),
        ("SEXTON_EXECUTION_KEY", task.execution_key.clone()),
        ("SEXTON_SCHEDULED_FOR", rfc3339(task.scheduled_for)),
        ("SEXTON_DEADLINE", rfc3339(task.deadline)),
        ("SEXTON_IDEMPOTENCY_KEY", task.idempotency_key.clone()),
    ];
    variables.extend(task.target.clone().map(|target| ("SEXTON_TARGET", target)));
    variables
}

fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workers_secrets_and_settings_are_kept_from_tasks() {
        let names = [
            "PATH",
            "DATABASE_URL",
            "AMQP_URL",
            "SEXTON_NAMESPACE",
            "WORKER_SLOTS",
            "CRON_MAX_RETRIES",
            "MY_DATABASE_URL",
            "PGPASSWORD",
        ];
        let all = names.iter().map(|name| (OsString::from(name), OsString::from("x")));
        let left: Vec<_> = inherited(all).into_iter().map(|(name, _)| name).collect();
        assert_eq!(left, ["PATH", "MY_DATABASE_URL", "PGPASSWORD"]);
    }
}
