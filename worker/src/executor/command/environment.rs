//! Builds the environment variables of a command.
//!
//! They are: from the worker's own environment those that the catalogue's allow-list names, but never the
//! worker's secrets and settings; those that the catalogue sets; and the `SEXTON_*` variables that describe the
//! attempt.

use std::ffi::{OsStr, OsString};

use chrono::{DateTime, SecondsFormat, Utc};
use sexton_service::settings::is_setting;

use super::spec::{CommandTask, TaskUser};
use crate::executor::TaskRun;

/// Settings of the worker that bear none of the [`RESERVED_PREFIXES`].
const RESERVED_VARIABLES: [&str; 3] = ["DATABASE_URL", "DATABASE_DIRECT_URL", "AMQP_URL"];

/// Prefixes of the worker's settings. `SEXTON_` also prevents that a task started by another task is taken for
/// its parent's attempt.
const RESERVED_PREFIXES: [&str; 3] = ["SEXTON_", "WORKER_", "CRON_"];

/// Returns whether the variable is a setting of the platform, and never inherited.
pub(crate) fn is_never_inherited(name: &OsStr) -> bool {
    is_reserved(name) || name.to_str().is_some_and(is_setting)
}

/// Returns whether the variable is reserved for the platform, and never set by a catalogue. A catalogue may set
/// those settings that have a common name (`RUST_LOG`).
pub(crate) fn is_reserved(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    RESERVED_VARIABLES.iter().any(|reserved| name == *reserved)
        || RESERVED_PREFIXES.iter().any(|prefix| bytes.starts_with(prefix.as_bytes()))
}

/// Returns the variables of `all` that commands like `task` inherit.
pub(super) fn inherited_variables(
    task: &CommandTask,
    all: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let inherits = |name: &OsStr| !is_never_inherited(name) && task.environment.inherits(name);
    let mut variables: Vec<_> = all.iter().filter(|(name, _)| inherits(name)).cloned().collect();
    if let Some(TaskUser { account, .. }) = &task.user {
        // The worker's own values would lead the task to another user's files.
        let (name, home) = match account {
            Some((name, home)) => (Some(name.as_str()), home.as_str()),
            None => (None, "/"),
        };
        for (variable, value) in [("USER", name), ("LOGNAME", name), ("HOME", Some(home))] {
            variables.retain(|(other, _)| other != variable);
            if let Some(value) = value.filter(|_| task.environment.inherits(OsStr::new(variable))) {
                variables.push((variable.into(), value.into()));
            }
        }
    }
    variables
}

/// Returns the variables that describe `task`.
pub(super) fn attempt_variables(task: &TaskRun) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("SEXTON_EXECUTION_ID", task.execution_id.to_string()),
        ("SEXTON_ATTEMPT", task.attempt.to_string()),
        ("SEXTON_JOB", task.job.clone()),
        ("SEXTON_EXECUTION_KEY", task.execution_key.clone()),
        ("SEXTON_SCHEDULED_FOR", rfc3339(task.scheduled_for)),
        ("SEXTON_DEADLINE", rfc3339(task.deadline)),
        ("SEXTON_IDEMPOTENCY_KEY", task.idempotency_key.clone()),
    ];
    if let Some(trace) = &task.trace {
        variables.push(("TRACEPARENT", trace.traceparent()));
        variables.extend(trace.state.clone().map(|state| ("TRACESTATE", state)));
    }
    variables.extend(task.target.clone().map(|target| ("SEXTON_TARGET", target)));
    variables
}

fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::command::CommandLine;

    const OF_THE_WORKER: [&str; 16] = [
        "PATH",
        "HOME",
        "USER",
        "LC_ALL",
        "LC_TIME",
        "DATABASE_URL",
        "DATABASE_DIRECT_URL",
        "AMQP_URL",
        "SEXTON_NAMESPACE",
        "WORKER_SLOTS",
        "CRON_MAX_RETRIES",
        "LEASE_MS",
        "HEALTH_ADDR",
        "RUST_LOG",
        "MY_DATABASE_URL",
        "PGPASSWORD",
    ];

    fn task() -> CommandTask {
        CommandTask::new(CommandLine { program: "/bin/true".into(), arguments: Vec::new() })
    }

    fn inherited_by(task: &CommandTask) -> Vec<String> {
        let all: Vec<_> = OF_THE_WORKER.iter().map(|name| ((*name).into(), "x".into())).collect();
        let inherited = inherited_variables(task, &all).into_iter();
        inherited.map(|(name, value)| format!("{}={}", name.display(), value.display())).collect()
    }

    #[test]
    fn only_what_the_allow_list_names_is_inherited() {
        assert_eq!(inherited_by(&task()), ["PATH=x", "HOME=x", "USER=x", "LC_ALL=x", "LC_TIME=x"]);
        let mut custom_task = task();
        custom_task.environment.inherit = vec!["PGPASSWORD".to_owned(), "MY_*".to_owned()];
        assert_eq!(inherited_by(&custom_task), ["MY_DATABASE_URL=x", "PGPASSWORD=x"]);
    }

    #[test]
    fn the_workers_secrets_and_settings_are_kept_from_tasks() {
        let mut inherits_all = task();
        inherits_all.environment.inherit = vec!["*".to_owned()];
        let expected =
            ["HOME", "LC_ALL", "LC_TIME", "MY_DATABASE_URL", "PATH", "PGPASSWORD", "USER"];
        let mut inherited = inherited_by(&inherits_all);
        inherited.sort();
        assert_eq!(inherited, expected.map(|name| format!("{name}=x")));
    }

    #[test]
    fn another_user_has_a_home_and_a_name_of_its_own() {
        let mut other = task();
        let account = Some(("reports".to_owned(), "/srv/reports".to_owned()));
        other.user = Some(TaskUser { uid: 900, gid: 900, account });
        let inherited = inherited_by(&other);
        let (home, user) = ("HOME=/srv/reports".to_owned(), "USER=reports".to_owned());
        assert!(inherited.contains(&home) && inherited.contains(&user), "{inherited:?}");
        assert!(!inherited.contains(&"HOME=x".to_owned()), "{inherited:?}");
        other.user = Some(TaskUser { uid: 900, gid: 900, account: None });
        assert_eq!(self::inherited_by(&other), ["PATH=x", "LC_ALL=x", "LC_TIME=x", "HOME=/"]);
    }
}
