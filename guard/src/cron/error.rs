//! Why no job runs.

use std::fmt;

use crate::error::LockError;

/// All problems of the jobs, each with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidCron {
    /// One problem a line, such as `job "a": schedule: …`.
    pub problems: Vec<String>,
}

impl fmt::Display for InvalidCron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl std::error::Error for InvalidCron {}

/// Why no job runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CronError {
    /// Names, schedules or keys are wrong. Correct what the lines name.
    #[error("{0}")]
    Invalid(InvalidCron),
    /// The locks cannot be taken: the database is away, or lacks what [`LockError`] names.
    #[error("{0}")]
    Lock(#[from] LockError),
}
