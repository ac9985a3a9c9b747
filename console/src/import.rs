//! Reads the definitions of other schedulers (a crontab, the CronJobs of Kubernetes) and writes a jobs file
//! of it.
//!
//! # Guarantees
//!
//! * The jobs file passes the checker: an entry whose job would not is left out.
//! * Nothing is lost silently: what could not be carried over is in [`ImportOutcome::left_out`], each with
//!   its line, all of them at once; a remark beside the job names what means something else here.
//! * Names are valid and unique, and the same input gives the same output.
//! * Each job says what the other scheduler does with late, long, failed and overlapping runs, also
//!   where that is not what a job does that says nothing.
//! * A text has at most [`MAX_FILE_BYTES`], and no text makes a reader panic.
//!
//! # What it does not do
//!
//! A command cannot stand in a job, so what the jobs run is a file of its own, the worker's catalogue.
//! Nothing is applied.

mod build;
pub mod crontab;
mod days;
pub mod kubernetes;
mod names;
mod policies;
mod program;
mod shell;
mod toml;
mod write;
mod yaml;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use sexton_model::cron::DayRule;
use sexton_model::quoting::quoted;
use sexton_model::zone::Zone;

pub use build::finish;
pub use policies::Policies;
pub use write::{MAX_TASKS_BYTES, jobs_file, tasks_file};

/// Longest file that is read, in bytes.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;
/// Longest files that are read together, in bytes.
pub const MAX_FILES_BYTES: usize = 4 * MAX_FILE_BYTES;
/// The most entries of the files that are read together.
pub const MAX_ENTRIES: usize = 20_000;
/// The most things left out that are listed; of further ones only the number is.
pub const MAX_LEFT_OUT: usize = 1_000;
/// The most characters of what was left out that are repeated, and of why.
const MAX_REASON_CHARS: usize = 300;

/// A file of which nothing can be carried over.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ImportError {
    /// Over the limit.
    #[error("the file has {0} bytes or more; {MAX_FILE_BYTES} at most")]
    TooLong(usize),
    /// Over the limit, with the files before it.
    #[error("the files have more than {MAX_FILES_BYTES} bytes together; import some at a time")]
    TooLongTogether,
    /// Over the limit.
    #[error("there are more than {MAX_ENTRIES} entries; import some at a time")]
    TooMany,
    /// After a mistake in its form there is no telling what the rest means.
    #[error("line {line}, column {column}: {message}")]
    Malformed {
        /// Counted from 1.
        line: usize,
        /// In characters, counted from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
}

/// What a worker's catalogue needs to have.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Program {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Whose rights it has.
    pub user: Option<String>,
    /// Where it runs.
    pub directory: Option<String>,
    /// Variables of its environment.
    pub set: BTreeMap<String, String>,
    /// What it reads on standard input, if not its params.
    pub stdin: Option<String>,
}

/// One entry that becomes a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The file that it stands in, as it was named.
    pub file: String,
    /// Where it stands there, counted from 1.
    pub line: usize,
    /// The job's name, unique among the entries.
    pub name: String,
    /// The task type; entries that run the same share one.
    pub task: String,
    /// For people.
    pub description: String,
    /// The expression.
    pub schedule: String,
    /// The zone whose clocks it is about.
    pub zone: Zone,
    /// How the other scheduler combines the day fields, if both restrict the days.
    pub days: Option<DayRule>,
    /// By how much its firings are spread, and the remark about it.
    pub jitter: Option<(Duration, String)>,
    /// How the other scheduler deals with its runs.
    pub policies: Policies,
    /// The owner's own words.
    pub labels: BTreeMap<String, String>,
    /// What the worker runs.
    pub program: Program,
    /// What means something else here than there, or has to be seen to.
    pub remarks: Vec<String>,
    /// It does not fire there either.
    pub paused: bool,
}

/// Something that was not carried over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// The file that it stands in, as it was named.
    pub file: String,
    /// Counted from 1.
    pub line: Option<usize>,
    /// It is a whole entry: something that runs there does not run here.
    pub entry: bool,
    /// The beginning of what it says, in quotes and safe to show; or which it is.
    pub what: String,
    /// Why, and what to do instead.
    pub why: String,
}

impl LeftOut {
    fn new((file, line): (&str, usize), entry: bool, what: &str, why: impl Into<String>) -> Self {
        let (file, line) = (file.to_owned(), Some(line));
        Self { file, line, entry, what: quoted(what), why: clip(&why.into()) }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}: {}", self.what, self.why)
    }
}

/// What a file holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ImportOutcome {
    /// The files that were read, as they were named.
    pub files: Vec<String>,
    /// What becomes a job, in the order of the file.
    pub entries: Vec<Entry>,
    /// What does not, in the order of the file.
    pub left_out: Vec<LeftOut>,
    /// How many more were left out than are listed.
    pub more_left_out: usize,
    /// What is true of all of them.
    pub remarks: Vec<String>,
}

impl ImportOutcome {
    /// Adds to what is left out; beyond the limit only the number is kept.
    fn leave_out(&mut self, left: LeftOut) {
        if self.left_out.len() < MAX_LEFT_OUT {
            self.left_out.push(left);
        } else {
            self.more_left_out += 1;
        }
    }

    /// Everything left out, a line each, with its file if there are several.
    pub fn describe_left_out(&self) -> Vec<String> {
        let more = Some(self.more_left_out).filter(|more| *more > 0);
        let more = more.map(|more| format!("and {more} more"));
        let several = self.files.len() > 1;
        let descriptions = self
            .left_out
            .iter()
            .map(|left| if several { format!("{}: {left}", left.file) } else { left.to_string() });
        descriptions.chain(more).collect()
    }
}

fn clip(text: &str) -> String {
    let mut clip: String = text.chars().take(MAX_REASON_CHARS).collect();
    if clip.len() < text.len() {
        clip.push('…');
    }
    clip
}

#[cfg(test)]
mod tests;
