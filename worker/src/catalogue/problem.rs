//! What is wrong with a catalogue, in words for the person who deploys it.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sexton_model::quoting::escaped;

/// The most problems that are reported; of further ones only the number is.
pub const MAX_PROBLEMS: usize = 1_000;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; `None` where it is about the whole file.
    pub line: Option<usize>,
    /// The task type.
    pub task: Option<String>,
    /// The key of the task's table.
    pub field: Option<String>,
    /// What is wrong and what to do.
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

/// Everything that is wrong with a catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the task catalogue {} is not usable:{}", .path.display(), list(.problems))]
pub struct CatalogueErrors {
    /// The catalogue's file.
    pub path: PathBuf,
    /// What is wrong with it, in the order of its lines; at least one, and one more than
    /// [`MAX_PROBLEMS`] at most, which then says how many there are besides.
    pub problems: Vec<Problem>,
}

impl CatalogueErrors {
    pub(super) fn new(path: &Path, problems: Vec<Problem>) -> Self {
        Self { path: path.to_owned(), problems }
    }
}

fn list(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |said, problem| said + "\n  " + &problem.to_string())
}

/// The most characters of a name that a problem keeps; no valid one is longer.
const MAX_NAME_CHARS: usize = 256;

/// Collects problems and finds their lines.
pub(super) struct Problems {
    /// Where each line begins, but for the first.
    lines: Vec<usize>,
    found: Vec<Problem>,
    unreported: usize,
}

impl Problems {
    /// For `text`, whose byte offsets become line numbers.
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

    /// Notes a problem that would only repeat others.
    pub(super) fn add_if_first(&mut self, message: &str) {
        if self.found.is_empty() {
            self.add(None, None, None, message);
        }
    }

    /// # Errors
    ///
    /// The problems found so far, if there are any.
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
