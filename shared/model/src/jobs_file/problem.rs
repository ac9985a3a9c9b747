//! Problems of a jobs file, with their places.

use std::fmt;

use crate::quoting::{plain, quoted};

/// Maximum number of problems reported; of further ones only the number is.
pub const MAX_PROBLEMS: usize = 1_000;

/// Maximum length of a job's name or a field's path that a problem keeps, in characters; no valid job name is longer.
const MAX_KEPT_CHARS: usize = 256;

/// A problem. Displays as `jobs.toml:14: job "billing.run": timezone: "Mars/Base" is not supported yet; …`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The file's name as given; `CRON_JOBS` for the environment; empty for jobs without a file.
    pub file: String,
    /// Counted from 1.
    pub line: Option<usize>,
    /// The job's name as written; `None` if it has none or the problem is outside of any.
    pub job: Option<String>,
    /// The field, with dots for nested ones.
    pub field: Option<String>,
    /// The problem and a valid form.
    pub message: String,
    /// Number of further problems of the file, which are not listed: that of the last one, whose message states it; 0 for all others.
    pub unlisted: usize,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => {}
            (file, Some(line)) => write!(f, "{file}:{line}: ")?,
            (file, None) => write!(f, "{file}: ")?,
        }
        if let Some(job) = &self.job {
            write!(f, "job {}: ", quoted(job))?;
        }
        if let Some(field) = &self.field {
            write!(f, "{}: ", plain(field))?;
        }
        f.write_str(&self.message)
    }
}

/// Returns the beginning of a text, so that a thousand problems do not keep a thousand copies of a long one.
fn clip(text: &str) -> String {
    text.chars().take(MAX_KEPT_CHARS).collect()
}

/// Collects the problems of one file.
pub(crate) struct Report<'f> {
    file: &'f str,
    /// Byte offset of each line.
    lines: Vec<usize>,
    problems: Vec<Problem>,
    unreported: usize,
}

impl<'f> Report<'f> {
    /// Makes a report for `text`, whose byte offsets become line numbers.
    pub(crate) fn new(file: &'f str, text: &str) -> Self {
        let after_newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        let lines = std::iter::once(0).chain(after_newlines.map(|(at, _)| at + 1)).collect();
        Self { file, lines, problems: Vec::new(), unreported: 0 }
    }

    /// Returns the line of a byte offset, counted from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset)
    }

    /// Returns the byte within its line of a byte offset, counted from 1.
    pub(crate) fn column(&self, offset: usize) -> usize {
        offset - self.lines[self.line(offset) - 1] + 1
    }

    /// Returns the number of problems so far.
    pub(crate) const fn count(&self) -> usize {
        self.problems.len() + self.unreported
    }

    pub(crate) fn add(
        &mut self,
        offset: Option<usize>,
        job: Option<&str>,
        field: Option<&str>,
        message: impl Into<String>,
    ) {
        if self.problems.len() == MAX_PROBLEMS {
            self.unreported += 1;
            return;
        }
        self.problems.push(Problem {
            file: self.file.to_owned(),
            line: offset.map(|offset| self.line(offset)),
            job: job.map(clip),
            field: field.map(clip),
            message: message.into(),
            unlisted: 0,
        });
    }

    /// Returns all problems, in the order of the file.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.line);
        if self.unreported > 0 {
            self.problems.push(Problem {
                file: self.file.to_owned(),
                line: None,
                job: None,
                field: None,
                message: format!("and {} more problems", self.unreported),
                unlisted: self.unreported,
            });
        }
        self.problems
    }
}
