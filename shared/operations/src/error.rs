//! Why an operation did not do what was asked: one variant for each reaction, with the facts as values.
//!
//! The texts state what is the case. What to do about it differs between a command line and a page, so the one that
//! renders an error adds its own remedy.

use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::jobs_file;
use sexton_model::state::State;
use sexton_store::StoreError;
use sexton_store::failures::MutedMatches;
use sexton_store::operator::{OperatorAction, OperatorError};
use uuid::Uuid;

/// Why an operation did not do what was asked. Unless a function says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// The request itself is wrong: the caller corrects it.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    /// Nothing has the given name.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// It is so already, or no longer possible: somebody was faster.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// It cannot be done now, for the reason in the text.
    #[error("{0}")]
    Failed(String),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is wrong with a request.
#[derive(Debug, thiserror::Error)]
pub enum InvalidRequest {
    /// One field.
    #[error("{}", join_field(field, problem))]
    Field {
        /// The field's name, as in `task_type`.
        field: &'static str,
        /// What is wrong with it, to be read after the name; perhaps after a colon.
        problem: String,
    },
    /// Several things, each as it would be alone.
    #[error("{}", join_lines(.0))]
    Several(Vec<OperationError>),
    /// A range in which nothing can lie.
    #[error("since is not before until: nothing can have failed in between")]
    EmptyRange,
    /// A range that ends before it begins.
    #[error("to is before from")]
    BackwardRange,
    /// Neither an instant nor the beginning of a range.
    #[error("neither at nor from is given")]
    NoInstant,
    /// A cursor of a list in another order.
    #[error("after is the cursor of a list in the other order")]
    WrongOrder,
    /// Neither ids nor a filter nor an explicit `all`.
    #[error("nothing is selected")]
    NothingSelected,
    /// Ids and a filter at once.
    #[error("give ids or a filter, not both: ids select by themselves")]
    IdsAndFilter,
    /// An attempt number for several executions.
    #[error("an attempt goes with one id; each execution has attempts of its own")]
    AttemptNeedsSingleId,
    /// No execution's id begins like this.
    #[error("{0:?} is no execution's id")]
    ExecutionId(String),
    /// The ids of several executions begin like this.
    #[error("{0} is the beginning of several executions' ids")]
    AmbiguousExecutionId(String),
    /// No fingerprint begins like this.
    #[error("{0:?} is no fingerprint")]
    Fingerprint(String),
    /// Several groups' fingerprints begin like this.
    #[error("{digits} is the beginning of several fingerprints ({} …)", .several.join(", "))]
    AmbiguousFingerprint {
        /// The beginning.
        digits: String,
        /// Some of those that begin so.
        several: Vec<String>,
    },
    /// No unknown message's id begins like this.
    #[error("{0:?} is no id of an unknown message")]
    MessageId(String),
    /// The ids of several unknown messages begin like this.
    #[error("{0} stands for several messages")]
    AmbiguousMessageId(String),
    /// A jobs file, or what it asks for, cannot be applied.
    #[error("{} problems; nothing was applied", .0.len())]
    JobsFile(Vec<jobs_file::Problem>),
    /// Firings that run beside each other of a job whose policy forbids it.
    #[error("{0}")]
    OverlapForbidden(String),
    /// Anything else, in a sentence.
    #[error("{0}")]
    Other(String),
}

impl InvalidRequest {
    /// A problem of one field.
    pub fn field(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Field { field, problem: problem.into() }
    }
}

/// Whatever has no such name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotFound {
    /// No job.
    #[error("there is no job {name:?}")]
    Job {
        /// The name.
        name: String,
        /// Names that are like it, the most similar first.
        similar: Vec<String>,
    },
    /// No execution; retention may have removed it.
    #[error("there is no execution {0}")]
    Execution(String),
    /// No attempt of an execution.
    #[error("execution {execution} has no attempt {number}")]
    Attempt {
        /// The execution.
        execution: Uuid,
        /// The attempt's number.
        number: i32,
    },
    /// No attempt at all yet.
    #[error("execution {execution} is {state}: no attempt was opened yet")]
    AnyAttempt {
        /// The execution.
        execution: Uuid,
        /// Its state.
        state: String,
    },
    /// No group of failures.
    #[error("there is no group {digits}")]
    Group {
        /// The fingerprint, or the beginning that was given.
        digits: String,
        /// Fingerprints that begin alike.
        similar: Vec<String>,
    },
    /// No bulk.
    #[error("there is no bulk {0}")]
    Bulk(i64),
    /// No unknown message.
    #[error("there is no unknown message {0}")]
    UnknownMessage(String),
    /// No unknown message any more: retention was faster.
    #[error("there is no unknown message {0} any more")]
    ForgottenMessage(String),
    /// No worker that consumes from a pool.
    #[error("no worker consumes from the pool {pool}")]
    ServedPool {
        /// The pool.
        pool: String,
        /// The pools from which some worker consumes, by name.
        served: Vec<String>,
    },
    /// Anything else, in a sentence.
    #[error("{0}")]
    Other(String),
}

/// What an operator does to an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExecutionAction {
    /// Run again.
    Requeue,
    /// Give up.
    Discard,
    /// Take a discard back.
    Restore,
    /// End before or while it runs.
    Cancel,
}

impl ExecutionAction {
    /// What an execution is afterwards: `requeued`, `discarded`, `restored` or `cancelled`.
    pub const fn done(self) -> &'static str {
        match self {
            Self::Requeue => "requeued",
            Self::Discard => "discarded",
            Self::Restore => "restored",
            Self::Cancel => "cancelled",
        }
    }
}

/// What an operator does to a bulk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BulkAction {
    /// Stop it for good.
    Stop,
    /// Let it go on.
    Resume,
}

impl BulkAction {
    /// What a bulk is afterwards: `stopped` or `resumed`.
    pub const fn done(self) -> &'static str {
        match self {
            Self::Stop => "stopped",
            Self::Resume => "resumed",
        }
    }
}

/// Why nothing is to be done, or why it is too late.
#[derive(Debug, thiserror::Error)]
pub enum Conflict {
    /// An execution is in a state in which this cannot be done, or at another attempt than the one that was seen.
    #[error(
        "execution {id} cannot be {}: it is {} at attempt {attempt}", action.done(), state.as_str()
    )]
    Execution {
        /// The execution.
        id: ExecutionId,
        /// What was to be done.
        action: ExecutionAction,
        /// Its state now.
        state: State,
        /// Its attempt number now.
        attempt: AttemptNumber,
        /// What operators did to it last, and how long that is ago, in words.
        last: Option<(Box<OperatorAction>, String)>,
    },
    /// A bulk is in a state in which this cannot be done.
    #[error("bulk {id} cannot be {}: it is {state}", action.done())]
    Bulk {
        /// The bulk.
        id: i64,
        /// What was to be done.
        action: BulkAction,
        /// Its state.
        state: String,
        /// Who stopped it.
        stopped_by: Option<String>,
    },
    /// A bulk that discarded nothing; there is nothing to restore.
    #[error("bulk {0} has discarded nothing; nothing was done")]
    NothingDiscarded(i64),
    /// A bulk still discards; what it discarded cannot be restored before it has ended.
    #[error("bulk {id} is {state}, and would go on discarding")]
    BulkStillDiscards {
        /// The bulk.
        id: i64,
        /// Its state.
        state: String,
    },
    /// No execution fits the selection, or only some of muted groups, which it leaves out.
    #[error("there are no such executions")]
    NoExecutions {
        /// What was left out.
        left_out: MutedMatches,
    },
    /// A job has executions under way.
    #[error("{0}")]
    JobUnderWay(String),
    /// Only the first part of an unknown message is kept.
    #[error("only the first {kept_bytes} of its {body_bytes} bytes are kept")]
    TruncatedMessage {
        /// What is kept.
        kept_bytes: i32,
        /// What the message had.
        body_bytes: i64,
    },
    /// Anything else, in a sentence.
    #[error("{0}")]
    Other(String),
}

/// What the store says of an action on an execution that was not done.
pub(crate) fn action_error(error: OperatorError, action: ExecutionAction) -> OperationError {
    match error {
        OperatorError::Missing(id) => NotFound::Execution(id.to_string()).into(),
        OperatorError::Conflict { id, state, attempt } => {
            Conflict::Execution { id, action, state, attempt, last: None }.into()
        }
        error @ (OperatorError::CancelAlreadyRequested(_) | OperatorError::ParamsChanged(_)) => {
            Conflict::Other(error.to_string()).into()
        }
        error @ OperatorError::Locked(_) => OperationError::Failed(error.to_string()),
        OperatorError::Store(error) => error.into(),
    }
}

/// A field's name and what is wrong with it.
pub fn join_field(name: &str, problem: &str) -> String {
    let blank = if problem.starts_with(':') { "" } else { " " };
    format!("{name}{blank}{problem}")
}

fn join_lines(all: &[OperationError]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
