//! Why a request is invalid.

use sexton_model::alerts_file::AlertsProblem;
use sexton_model::jobs_file;
use sexton_model::lock_key::DeriveError;
use sexton_model::lock_key::ranges_file::RangeProblem;
use sexton_store::locks::{AdvisoryLock, LockKey};

use super::OperationError;
use crate::schema_mismatch::{SchemaMismatch, describe_mismatches};

/// What is wrong with an item of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ItemProblem {
    /// The item's index; `None`: it concerns several.
    pub index: Option<usize>,
    /// What is wrong.
    pub problem: String,
}

/// Why a request is invalid.
#[derive(Debug, thiserror::Error)]
pub enum InvalidRequest {
    /// One field is invalid.
    #[error("{}", join_field(field, problem))]
    Field {
        /// The field's name, as in `task_type`.
        field: &'static str,
        /// The problem, to be read after the name, or after the name and a colon.
        problem: String,
    },
    /// A field's instant lies ahead, by the database's clock.
    #[error("{}", join_field(field, problem))]
    Ahead {
        /// The field's name.
        field: &'static str,
        /// The problem, as that of [`Self::Field`].
        problem: String,
    },
    /// Params do not match the schemas that workers publish for their task type.
    #[error("{}", describe_mismatches(task_type, mismatches))]
    Params {
        /// The task type.
        task_type: String,
        /// Every place at which they do not match.
        mismatches: Vec<SchemaMismatch>,
    },
    /// Items of a list are invalid.
    #[error("{}", join_items(.0))]
    Items(Vec<ItemProblem>),
    /// Several problems, each as it would be alone.
    #[error("{}", join_lines(.0))]
    Several(Vec<OperationError>),
    /// A range that contains no instant.
    #[error("since is not before until: there is no time in between")]
    EmptyRange,
    /// Neither an instant nor the beginning of a range.
    #[error("neither at nor since is given")]
    NoInstant,
    /// No ids, no filter and no explicit `all`.
    #[error("nothing is selected")]
    NothingSelected,
    /// Ids and a filter at once.
    #[error("give ids or a filter, not both: ids select by themselves")]
    IdsAndFilter,
    /// An attempt number for several executions.
    #[error("an attempt goes with one id; each execution has attempts of its own")]
    AttemptNeedsSingleId,
    /// No execution's id begins with this.
    #[error("{0:?} is no execution's id")]
    ExecutionId(String),
    /// Several executions' ids begin with this.
    #[error("{digits} is the beginning of several executions' ids: {}", .several.join(", "))]
    AmbiguousExecutionId {
        /// The given beginning.
        digits: String,
        /// Some of the matching executions, with their jobs and states.
        several: Vec<String>,
    },
    /// Several workers' ids begin with this.
    #[error("{digits} is the beginning of several workers' ids: {}", .several.join(", "))]
    AmbiguousWorker {
        /// The given beginning.
        digits: String,
        /// Some of the matching workers, with their names and states.
        several: Vec<String>,
    },
    /// No fingerprint begins with this.
    #[error("{0:?} is no fingerprint")]
    Fingerprint(String),
    /// Several groups' fingerprints begin with this.
    #[error("{digits} is the beginning of several fingerprints: {}", .several.join(", "))]
    AmbiguousFingerprint {
        /// The given beginning.
        digits: String,
        /// Some of the matching fingerprints.
        several: Vec<String>,
    },
    /// No unknown message's id begins with this.
    #[error("{0:?} is no id of an unknown message")]
    MessageId(String),
    /// Several unknown messages' ids begin with this.
    #[error("{digits} is the beginning of several messages' ids: {}", .several.join(", "))]
    AmbiguousMessageId {
        /// The given beginning.
        digits: String,
        /// Some of the matching ids.
        several: Vec<String>,
    },
    /// A jobs file, or its content, cannot be applied.
    #[error("{} problems; nothing was applied", .0.len())]
    JobsFile(Vec<jobs_file::Problem>),
    /// A file of lock key ranges, or its content, cannot be imported.
    #[error("{} problems; nothing was imported", .0.len())]
    RangesFile(Vec<RangeProblem>),
    /// An alerts file, or a checks file, cannot be applied.
    #[error("{} problems; nothing was applied", .0.len())]
    AlertsFile(Vec<AlertsProblem>),
    /// A formula has no key for these texts.
    #[error(transparent)]
    LockKey(#[from] DeriveError),
    /// Only its session, or the server, can release an advisory lock.
    #[error("{key} is the key of an advisory lock, which ends with its session")]
    AdvisoryLock {
        /// The key.
        key: LockKey,
        /// The sessions that hold it.
        holders: Vec<AdvisoryLock>,
    },
    /// The firings would overlap, against the job's policy.
    #[error("{0}")]
    OverlapForbidden(String),
    /// Another problem, in a sentence.
    #[error("{0}")]
    Other(String),
}

impl InvalidRequest {
    /// Makes the error for one field.
    pub fn field(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Field { field, problem: problem.into() }
    }

    /// Makes the error for a field whose instant lies ahead.
    pub(crate) fn ahead(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Ahead { field, problem: problem.into() }
    }
}

/// Joins a field's name and its problem.
pub fn join_field(name: &str, problem: &str) -> String {
    let blank = if problem.starts_with(':') { "" } else { " " };
    format!("{name}{blank}{problem}")
}

fn join_lines(all: &[OperationError]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Writes each on a line, as in `item 3: key is empty`.
fn join_items(all: &[ItemProblem]) -> String {
    let line = |one: &ItemProblem| match one.index {
        Some(index) => format!("item {}: {}", index + 1, one.problem),
        None => one.problem.clone(),
    };
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}
