//! A command as the catalogue defines it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use crate::guard::TaskLimits;
use sexton_outbound::secret::Value;

/// The variables that a task inherits from the worker by default. A `*` at the end matches any suffix.
pub const INHERITED_VARIABLES: [&str; 9] =
    ["PATH", "HOME", "LANG", "LC_*", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL"];

/// How long a command may clear up after SIGTERM by default.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(5);

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// Its arguments, without the program itself.
    pub arguments: Vec<String>,
}

/// A program of the host, and how to run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTask {
    /// The program and its arguments.
    pub line: CommandLine,
    /// How long it may clear up after SIGTERM; up to 10 minutes, 5 s by default.
    pub grace: Duration,
    /// The user whose rights it has; `None`: the worker's.
    pub user: Option<TaskUser>,
    /// Its working directory, an absolute path; `None`: the worker's.
    pub directory: Option<PathBuf>,
    /// Its environment variables.
    pub environment: TaskEnvironment,
    /// Its limits.
    pub limits: TaskLimits,
    /// Its standard input; `None`: its params.
    pub stdin: Option<String>,
}

impl CommandTask {
    /// Creates a command with the catalogue's defaults.
    pub fn new(line: CommandLine) -> Self {
        Self {
            line,
            grace: GRACE_DEFAULT,
            user: None,
            directory: None,
            environment: TaskEnvironment::default(),
            limits: TaskLimits::default(),
            stdin: None,
        }
    }
}

/// A user of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskUser {
    /// The user id.
    pub uid: u32,
    /// The group id. The task has no supplementary groups.
    pub gid: u32,
    /// Name and home of the account, if the host has one with this user id.
    pub account: Option<(String, String)>,
}

/// The environment variables of a task, without those that describe the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnvironment {
    /// The variables that it inherits from the worker: names, and prefixes that end with a `*`.
    pub inherit: Vec<String>,
    /// The variables that the catalogue sets; they replace inherited ones.
    pub set: Vec<(String, Value)>,
}

impl Default for TaskEnvironment {
    fn default() -> Self {
        Self { inherit: INHERITED_VARIABLES.map(str::to_owned).to_vec(), set: Vec::new() }
    }
}

impl TaskEnvironment {
    /// Returns whether the variable is inherited.
    pub fn inherits(&self, name: &OsStr) -> bool {
        let name = name.as_encoded_bytes();
        self.inherit.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning.as_bytes()),
            None => name == allowed.as_bytes(),
        })
    }
}
