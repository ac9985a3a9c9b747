//! The task catalogue: what each task type runs on this worker.
//!
//! A job only names a type and passes params; the deployer's catalogue decides what the type runs, so a person
//! who can edit jobs cannot run arbitrary commands.
//!
//! ```toml
//! [tasks.report]
//! command = ["/opt/reports/generate", "--quiet"]  # no shell; see the `command` module
//! timeout = "45m"                                 # optional; the job's section counts if it is shorter
//! retry = { max_retries = 5 }                     # optional; for jobs without their own
//! grace = "5s"                                    # optional; between SIGTERM and SIGKILL
//!
//! [tasks.charge]
//! http = { url = "https://pay.example.com/charges", headers = { Authorization = { env = "PAY_KEY" } } }
//! ```
//!
//! # Guarantees
//!
//! - A catalogue is read as a whole or not at all: every problem of the file is reported at once, with line,
//!   task and field. Nothing in it is ignored: unknown keys are problems, and so are the executors of later
//!   versions.
//! - Programs are found when the catalogue is loaded: an absolute path as it is, a path with a slash from the
//!   catalogue's own folder, a bare name in `PATH`. The program must exist and be executable. Symbolic links
//!   are kept, so that a deployment can change them later.
//!
//! The worker reads it once, at the start; a program that vanishes afterwards makes attempts fail, not the
//! worker.

mod command;
mod email;
mod entry;
mod fields;
mod http;
mod problem;
mod program;
mod retry;
mod schema;
mod sql;
mod user;
mod value;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use sexton_model::job::RetryOverrides;
use sexton_model::quoting::escaped;
use toml::de::DeTable;

pub use self::command::{
    COMMAND_MAX_WORDS, CPU_TIME, GRACE_MAX, MEMORY, OPEN_FILES, STDIN_TEXT_MAX_BYTES, VARIABLES_MAX,
};
pub use self::email::{EMAIL_TEXT_MAX_BYTES, EMAIL_TIMEOUT_DEFAULT};
pub use self::entry::TIMEOUT_MAX;
pub use self::http::{HEADERS_MAX, HTTP_TIMEOUT_DEFAULT, RESPONSE_DEFAULT, RESPONSE_MAX};
use self::problem::Problems;
pub use self::problem::{CatalogueErrors, MAX_PROBLEMS, Problem};
use self::program::ProgramFinder;
pub use self::sql::{LOCK_TIMEOUT_MAX, SQL_MAX_BYTES, STATEMENT_TIMEOUT_MAX};

use crate::executor::command::CommandTask;
use crate::executor::email::EmailTask;
use crate::executor::http::HttpTask;
use crate::executor::sql::SqlTask;

/// Largest catalogue, in bytes.
const FILE_MAX_BYTES: u64 = 1024 * 1024;

/// The task types that a worker offers.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalogue(BTreeMap<String, TaskEntry>);

/// One task type.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskEntry {
    /// The executor and its options.
    pub kind: TaskKind,
    /// The longest run that the deployer allows; a job may set less. 1 s to 30 days.
    pub timeout: Option<Duration>,
    /// The deployer's retry settings; a job's own take precedence.
    pub retry: RetryOverrides,
    /// JSON Schema of its params, validated; at most 64 KiB of JSON.
    pub params_schema: Option<serde_json::Value>,
}

/// The executor of a task type with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskKind {
    /// A program of the host.
    Command(CommandTask),
    /// A request to another system.
    Http(HttpTask),
    /// A statement on the platform's database.
    Sql(SqlTask),
    /// A mail.
    Email(EmailTask),
    /// No work at all.
    Noop,
}

impl Catalogue {
    /// Reads the catalogue at `path` and finds its programs.
    ///
    /// # Errors
    ///
    /// All problems of the file, for the person who deploys it.
    pub fn load(path: &Path) -> Result<Self, CatalogueErrors> {
        let folder = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let search_path = std::env::var_os("PATH");
        read(path)
            .and_then(|text| Self::parse(&text, folder, search_path))
            .map_err(|problems| CatalogueErrors::new(path, problems))
    }

    /// Returns the task type `task_type`; `None` if this worker does not offer it.
    pub fn get(&self, task_type: &str) -> Option<&TaskEntry> {
        self.0.get(task_type)
    }

    /// Returns the offered task types, sorted.
    pub fn types(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Parses the text of a catalogue in `folder`, with `search_path` as `PATH`.
    ///
    /// # Errors
    ///
    /// All its problems, at most [`MAX_PROBLEMS`] and one more.
    pub fn parse(
        text: &str,
        folder: &Path,
        search_path: Option<OsString>,
    ) -> Result<Self, Vec<Problem>> {
        let (root, syntax) = DeTable::parse_recoverable(text);
        let mut problems = Problems::new(text);
        for error in syntax {
            problems.add(error.span(), None, None, error.message());
        }
        // A syntax error would make valid entries look wrong.
        problems.take_result()?;
        let finder = ProgramFinder::new(folder, search_path);
        let mut tasks = BTreeMap::new();
        for (key, value) in root.get_ref() {
            if key.get_ref() != "tasks" {
                let key_text = escaped(key.get_ref());
                let message = format!("unknown key `{key_text}`: only `[tasks.NAME]` is known");
                problems.add(Some(key.span()), None, None, message);
                continue;
            }
            let Some(table) = value.get_ref().as_table() else {
                problems.add(Some(value.span()), None, None, "`tasks` must be a table");
                continue;
            };
            for (name, value) in table {
                if let Some(entry) = entry::read(name, value, &finder, &mut problems) {
                    tasks.insert(name.get_ref().to_string(), entry);
                }
            }
        }
        if tasks.is_empty() {
            let message = "no task type is offered: add `[tasks.NAME]` with what it runs";
            problems.add_if_first(message);
        }
        problems.take_result()?;
        Ok(Self(tasks))
    }
}

fn read(path: &Path) -> Result<String, Vec<Problem>> {
    let unreadable =
        |error: std::io::Error| vec![Problem::for_whole_file(format!("cannot be read: {error}"))];
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    // One byte more than allowed distinguishes a larger file from one of just this size.
    file.take(FILE_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_MAX_BYTES {
        return Err(vec![Problem::for_whole_file(format!(
            "is larger than {FILE_MAX_BYTES} bytes"
        ))]);
    }
    String::from_utf8(bytes).map_err(|_| vec![Problem::for_whole_file("is not UTF-8".to_owned())])
}

#[cfg(test)]
mod tests;
