//! Errors of operations: one variant for each reaction, with the facts as values.
//!
//! The texts state the facts. The remedy differs between a command line and a page, so the code that renders an error
//! adds its own.

mod invalid;

use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::State;
use sexton_store::StoreError;
use sexton_store::failures::MutedMatches;
use sexton_store::operator::{OperatorAction, OperatorError};
use uuid::Uuid;

pub use invalid::{InvalidRequest, ItemProblem, join_field};

/// Why an operation was refused or failed. Unless a function says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// The request is invalid: the caller corrects it.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    /// No object has the given name.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// The object's state does not allow it, perhaps after another operator's change.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The caller is restricted to jobs, and this concerns others.
    #[error("{0}")]
    OutOfScope(String),
    /// It is impossible now, for the reason in the text.
    #[error("{0}")]
    Failed(String),
    /// An error of the database.
    #[error(transparent)]
    Store(StoreError),
}

impl OperationError {
    /// Returns whether it would end the same way if it was tried again: a refusal, also by the database. The clock reaches an instant
    /// that lies ahead.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Invalid(invalid) => !matches!(invalid, InvalidRequest::Ahead { .. }),
            Self::NotFound(_) | Self::Conflict(_) => true,
            Self::OutOfScope(_) | Self::Failed(_) => false,
            Self::Store(error) => error.is_refusal(),
        }
    }
}

/// An object that does not exist.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotFound {
    /// A job.
    #[error("there is no job {name:?}")]
    Job {
        /// The name.
        name: String,
        /// Similar names, the most similar first.
        similar: Vec<String>,
    },
    /// An execution; retention may have removed it.
    #[error("there is no execution {0}")]
    Execution(String),
    /// A flow; it goes with its last member.
    #[error("there is no flow {0}, and no member of one")]
    Flow(String),
    /// An attempt of an execution.
    #[error("execution {execution} has no attempt {number}")]
    Attempt {
        /// The execution.
        execution: Uuid,
        /// The attempt's number.
        number: i32,
    },
    /// Any attempt: none was opened yet.
    #[error("execution {execution} is {state}: no attempt was opened yet")]
    AnyAttempt {
        /// The execution.
        execution: Uuid,
        /// Its state.
        state: String,
    },
    /// A group of failures.
    #[error("there is no group {digits}")]
    Group {
        /// The given fingerprint, or its beginning.
        digits: String,
        /// Similar fingerprints.
        similar: Vec<String>,
    },
    /// A bulk.
    #[error("there is no bulk {0}")]
    Bulk(i64),
    /// A range of lock keys, by its service.
    #[error("{0:?} has no range of lock keys")]
    KeyRange(String),
    /// A channel.
    #[error("there is no channel {0:?}")]
    Channel(String),
    /// A check of a foreign job.
    #[error("there is no check {0:?}")]
    Check(String),
    /// A ping key.
    #[error("there is no ping key {0:?}")]
    PingKey(String),
    /// A token that is not revoked.
    #[error("there is no token {0:?}")]
    Token(String),
    /// An account.
    #[error("there is no account {0:?}")]
    Account(String),
    /// A worker, by its name or id.
    #[error("there is no worker {0:?}")]
    Worker(String),
    /// A lock that is a row.
    #[error("there is no lock row {0:?}")]
    LockRow(String),
    /// An unknown message.
    #[error("there is no unknown message {0}")]
    UnknownMessage(String),
    /// An unknown message that retention has removed meanwhile.
    #[error("there is no unknown message {0} any more")]
    ForgottenMessage(String),
    /// A worker that consumes from a pool.
    #[error("no worker consumes from the pool {pool}")]
    ServedPool {
        /// The pool.
        pool: String,
        /// The pools with workers, by name.
        served: Vec<String>,
    },
    /// Another object, in a sentence.
    #[error("{0}")]
    Other(String),
}

/// An operator's action on an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExecutionAction {
    /// Run it again.
    Requeue,
    /// Give it up.
    Discard,
    /// Take its discard back.
    Restore,
    /// End it before or while it runs.
    Cancel,
}

impl ExecutionAction {
    /// Returns the participle for messages: `requeued`, `discarded`, `restored` or `cancelled`.
    pub const fn done(self) -> &'static str {
        match self {
            Self::Requeue => "requeued",
            Self::Discard => "discarded",
            Self::Restore => "restored",
            Self::Cancel => "cancelled",
        }
    }
}

/// An operator's action on a bulk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BulkAction {
    /// Stop it for good.
    Stop,
    /// Let it continue.
    Resume,
}

impl BulkAction {
    /// Returns the participle for messages: `stopped` or `resumed`.
    pub const fn done(self) -> &'static str {
        match self {
            Self::Stop => "stopped",
            Self::Resume => "resumed",
        }
    }
}

/// Why the current state does not allow an action.
#[derive(Debug, thiserror::Error)]
pub enum Conflict {
    /// The execution's state does not allow it, or its attempt number is not the one that the operator saw.
    #[error(
        "execution {id} cannot be {}: it is {} at attempt {attempt}", action.done(), state.as_str()
    )]
    Execution {
        /// The execution.
        id: ExecutionId,
        /// The refused action.
        action: ExecutionAction,
        /// Its state now.
        state: State,
        /// Its attempt number now.
        attempt: AttemptNumber,
        /// The last operator's action on it, and its age in words.
        last: Option<(Box<OperatorAction>, String)>,
    },
    /// The bulk's state does not allow it.
    #[error("bulk {id} cannot be {}: it is {state}", action.done())]
    Bulk {
        /// The bulk.
        id: i64,
        /// The refused action.
        action: BulkAction,
        /// Its state.
        state: String,
        /// The operator who stopped it.
        stopped_by: Option<String>,
    },
    /// The bulk has discarded nothing that could be restored.
    #[error("bulk {0} has discarded nothing; nothing was done")]
    NothingDiscarded(i64),
    /// The bulk still discards, so its discards cannot be restored yet.
    #[error("bulk {id} is {state}, and would go on discarding")]
    BulkStillDiscards {
        /// The bulk.
        id: i64,
        /// Its state.
        state: String,
    },
    /// No execution matches the selection, or only some of muted groups, which it leaves out.
    #[error("there are no such executions")]
    NoExecutions {
        /// The matches left out.
        left_out: MutedMatches,
    },
    /// The job has executions under way.
    #[error("{0}")]
    JobUnderWay(String),
    /// A job to be created exists.
    #[error("there is a job {0:?} already; replace it, or choose another name")]
    JobExists(String),
    /// Somebody has changed the job since the operator looked.
    #[error("job {name:?} was changed since you looked: it has the revision {revision}")]
    JobChanged {
        /// Its name.
        name: String,
        /// Its revision now.
        revision: i32,
    },
    /// The lock row is free already.
    #[error("lock row {0:?} is free already")]
    LockRowFree(String),
    /// The lock row has another holder than the operator saw, or the same one has taken it again.
    #[error("lock row {name:?} was taken again since you looked, by {locked_by} at {locked_at}")]
    LockRowChanged {
        /// The row.
        name: String,
        /// Its holder now, made safe.
        locked_by: String,
        /// Since when, in RFC 3339.
        locked_at: String,
    },
    /// The attempt that took the lock row runs, as far as the rows say.
    #[error("lock row {name:?} is in use: {holder}")]
    LockRowRunning {
        /// The row.
        name: String,
        /// The attempt and its worker, in words.
        holder: String,
        /// The attempt's execution.
        execution: Uuid,
    },
    /// Only the beginning of an unknown message is kept.
    #[error("only the first {kept_bytes} of its {body_bytes} bytes are kept")]
    TruncatedMessage {
        /// Number of bytes kept.
        kept_bytes: i32,
        /// The message's length.
        body_bytes: i64,
    },
    /// Another reason, in a sentence.
    #[error("{0}")]
    Other(String),
}

/// Converts the store's error of an action on an execution.
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
