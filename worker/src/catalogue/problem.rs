//! The problems of a catalogue, described for the person who deploys it.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sexton_model::quoting::escaped;

/// The most problems that are reported; the others are only counted.
pub const MAX_PROBLEMS: usize = 1_000;

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; `None` if the problem concerns the whole file.
    pub line: Option<usize>,
    /// The task type.
    pub task: Option<String>,
    /// The key of the task's table.
    pub field: Option<String>,
    /// The problem and its remedy.
    pub message: String,
}

impl Problem {
    pub(super) fn for_whole_file(message: String) -> Self {
        Self { line: None, task: None, field: None, message }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(task) = &self.task {
            write!(f, "task `{}`: ", escaped(task))?;
        }
        if let Some(field) = &self.field {
            write!(f, "`{}`: ", escaped(field))?;
        }
        f.write_str(&self.message)
    }
}

/// All problems of a catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the task catalogue {} is not usable:{}", .path.display(), list(.problems))]
pub struct CatalogueErrors {
    /// The catalogue's file.
    pub path: PathBuf,
    /// The problems in the order of their lines: at least one, at most [`MAX_PROBLEMS`] and one more, which
    /// then gives the number of the others.
    pub problems: Vec<Problem>,
}

impl CatalogueErrors {
    pub(super) fn new(path: &Path, problems: Vec<Problem>) -> Self {
        Self { path: path.to_owned(), problems }
    }
}

fn list(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |list, problem| list + "\n  " + &problem.to_string())
}

/// The most characters of a name that a problem keeps; no valid name is longer.
const MAX_NAME_CHARS: usize = 256;

/// Collects problems and finds their lines.
pub(super) struct Problems {
    /// The offset of each line except the first.
    lines: Vec<usize>,
    found: Vec<Problem>,
    unreported: usize,
}

impl Problems {
    /// Creates a collection for `text`, whose byte offsets become line numbers.
    pub(super) fn new(text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = newlines.map(|(at, _)| at + 1).collect();
        Self { lines, found: Vec::new(), unreported: 0 }
    }

    /// Notes a problem at `span`, a range of bytes of the text.
    pub(super) fn add(
        &mut self,
        span: Option<Range<usize>>,
        task: Option<&str>,
        field: Option<&str>,
        message: impl Into<String>,
    ) {
        if self.found.len() == MAX_PROBLEMS {
            self.unreported += 1;
            return;
        }
        let line = span.map(|span| self.lines.partition_point(|begin| *begin <= span.start) + 1);
        let clipped = |text: &str| text.chars().take(MAX_NAME_CHARS).collect();
        let (task, field) = (task.map(clipped), field.map(clipped));
        self.found.push(Problem { line, task, field, message: message.into() });
    }

    /// Notes a problem unless there are others, which it would only repeat.
    pub(super) fn add_if_first(&mut self, message: &str) {
        if self.found.is_empty() {
            self.add(None, None, None, message);
        }
    }

    /// # Errors
    ///
    /// The problems found so far, if any.
    pub(super) fn take_result(&mut self) -> Result<(), Vec<Problem>> {
        if self.found.is_empty() {
            return Ok(());
        }
        let mut found = std::mem::take(&mut self.found);
        found.sort_by_key(|problem| problem.line);
        if self.unreported > 0 {
            found.push(Problem::for_whole_file(format!("and {} more problems", self.unreported)));
        }
        Err(found)
    }
}
