//! Problems of an alerts file, with their places.

use std::fmt;

use crate::jobs_file::problem::Report;
use crate::quoting::{plain, quoted};

/// A problem. Displays as `alerts.toml:14: channel "ops": webhook.url: must begin with http:// or https://`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlertsProblem {
    /// The file's name as given.
    pub file: String,
    /// Counted from 1.
    pub line: Option<usize>,
    /// The channel, its name quoted, or the route; `None`: outside of any.
    pub place: Option<String>,
    /// The field, with dots for nested ones.
    pub field: Option<String>,
    /// The problem and a valid form.
    pub message: String,
    /// Number of further problems of the file, which are not listed: that of the last one, whose message states it; 0 for all others.
    pub unlisted: usize,
}

impl fmt::Display for AlertsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(place) = &self.place {
            write!(f, ": {place}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ": {}", plain(field))?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Returns the place of a channel.
pub(super) fn place_of_channel(name: &str) -> String {
    format!("channel {}", quoted(name))
}

pub(super) fn of_report(report: Report<'_>) -> Vec<AlertsProblem> {
    let problems = report.finish().into_iter();
    let problem = |problem: crate::jobs_file::Problem| AlertsProblem {
        file: problem.file,
        line: problem.line,
        place: problem.job,
        field: problem.field,
        message: problem.message,
        unlisted: problem.unlisted,
    };
    problems.map(problem).collect()
}
