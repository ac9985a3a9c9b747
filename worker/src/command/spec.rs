//! A command as the catalogue has it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use crate::guard::TaskLimits;
use crate::secret::Value;

/// What a task inherits of the worker's environment unless the catalogue says otherwise. A `*` at the
/// end stands for any rest.
pub const INHERITED_VARIABLES: [&str; 9] =
    ["PATH", "HOME", "LANG", "LC_*", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL"];

/// How long a command may clear up after SIGTERM unless the catalogue says otherwise.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(5);

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// Its arguments, without the program itself.
    pub arguments: Vec<String>,
}

/// A program of the host, and how it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTask {
    /// The program and its arguments.
    pub line: CommandLine,
    /// How long it may clear up after SIGTERM; up to 10 minutes, 5 s by default.
    pub grace: Duration,
    /// Whose rights it has; `None`: the worker's.
    pub user: Option<TaskUser>,
    /// Where it runs, an absolute path; `None`: where the worker does.
    pub directory: Option<PathBuf>,
    /// What it finds in its environment.
    pub environment: TaskEnvironment,
    /// What it may use.
    pub limits: TaskLimits,
    /// What it reads on standard input; `None`: its params.
    pub stdin: Option<String>,
}

impl CommandTask {
    /// A command as it is run if the catalogue says nothing more about it.
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
    /// The user's number.
    pub uid: u32,
    /// The number of the user's group. The task has no further groups.
    pub gid: u32,
    /// Name and home of the account, if the host has one of this number.
    pub account: Option<(String, String)>,
}

/// What a task finds in its environment, beside what describes the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnvironment {
    /// The variables that it inherits from the worker: names, and beginnings of names with a `*`.
    pub inherit: Vec<String>,
    /// The variables that it is given; they come before inherited ones.
    pub set: Vec<(String, Value)>,
}

impl Default for TaskEnvironment {
    fn default() -> Self {
        Self { inherit: INHERITED_VARIABLES.map(str::to_owned).to_vec(), set: Vec::new() }
    }
}

impl TaskEnvironment {
    /// Whether the variable is inherited.
    pub fn inherits(&self, name: &OsStr) -> bool {
        let name = name.as_encoded_bytes();
        self.inherit.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning.as_bytes()),
            None => name == allowed.as_bytes(),
        })
    }
}
