//! Why an apply is refused.

use sexton_model::jobs_file::Problem;

use super::{MAX_APPLIED_JOBS, missing_members};
use crate::StoreError;

/// Why an apply was refused.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// More than [`MAX_APPLIED_JOBS`].
    #[error("{0} jobs at once; {MAX_APPLIED_JOBS} at most")]
    TooMany(usize),
    /// Jobs that would never fire, or only in the past, or whose lock key is another job's or not of their service's range.
    #[error("{} of the jobs cannot be applied", .0.len())]
    Problems(Vec<Problem>),
    /// Flows whose members are executions of jobs that do not exist.
    #[error("{}", missing_members::describe(.0))]
    MissingMembers(Vec<(String, String)>),
    /// Templates that could not be filled; one line for each.
    #[error("{}", .0.join("\n"))]
    Templates(Vec<String>),
    /// A job to be created exists.
    #[error("there is a job {0:?} already")]
    Exists(String),
    /// A job to be changed does not exist.
    #[error("there is no job {0:?}")]
    Missing(String),
    /// Somebody has changed the job since the operator looked.
    #[error("job {name:?} was changed since you looked: it has the revision {revision}")]
    Changed {
        /// Its name.
        name: String,
        /// Its revision now.
        revision: i32,
    },
    /// Another apply, or a planner, held its locks for too long. Try again.
    #[error("the jobs are locked by somebody else; try again")]
    Locked,
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}
