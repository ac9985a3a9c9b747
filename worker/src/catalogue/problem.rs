//! What is wrong with a catalogue, in words for the person who deploys it.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

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
    pub(super) fn of_file(message: String) -> Self {
        Self { line: None, task: None, field: None, message }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(task) = &self.task {
            write!(f, "task `{task}`: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "`{field}`: ")?;
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
    /// What is wrong with it, in the order of its lines; at least one.
    pub problems: Vec<Problem>,
}

impl CatalogueErrors {
    pub(super) fn new(path: &Path, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.line);
        Self { path: path.to_owned(), problems }
    }
}

fn list(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |said, problem| said + "\n  " + &problem.to_string())
}

/// Collects problems and finds their lines.
pub(super) struct Problems<'a> {
    text: &'a str,
    found: Vec<Problem>,
}

impl<'a> Problems<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, found: Vec::new() }
    }

    /// Notes a problem at `span`, a range of bytes of the text.
    pub(super) fn add(
        &mut self,
        span: Option<Range<usize>>,
        task: Option<&str>,
        field: Option<&str>,
        message: impl Into<String>,
    ) {
        let line = span.map(|span| {
            let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
            before.split(|&byte| byte == b'\n').count()
        });
        let (task, field) = (task.map(str::to_owned), field.map(str::to_owned));
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
    pub(super) fn none_yet(&mut self) -> Result<(), Vec<Problem>> {
        if self.found.is_empty() { Ok(()) } else { Err(std::mem::take(&mut self.found)) }
    }
}
