//! Why nothing was enqueued.

use std::fmt;

use sqlx::postgres::PgDatabaseError;

/// A refusal of the platform: its text, the places, and what to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The SQLSTATE, of the class `SX`.
    pub sqlstate: String,
    /// What is wrong.
    pub message: String,
    /// All problems, one on each line, where there may be several.
    pub detail: Option<String>,
    /// What to do next.
    pub hint: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.detail.as_deref().unwrap_or(&self.message))?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, ". {hint}"))
    }
}

/// Why a call failed. After each of them but [`Self::Params`] PostgreSQL has aborted the caller's transaction: roll
/// it back, or back to a savepoint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such job (SX001). Apply it, or correct the name.
    #[error("{0}")]
    UnknownJob(Refusal),
    /// The job was deleted (SX002).
    #[error("{0}")]
    DeletedJob(Refusal),
    /// The job is paused (SX003). Repeat the transaction when an operator has resumed it.
    #[error("{0}")]
    PausedJob(Refusal),
    /// An argument is invalid (SX010).
    #[error("{0}")]
    InvalidArgument(Refusal),
    /// The params break a limit (SX011), or the schema of the job's workers refuses them (SX012).
    #[error("{0}")]
    InvalidParams(Refusal),
    /// A batch is too large (SX020).
    #[error("{0}")]
    TooManyItems(Refusal),
    /// The params cannot be written as JSON. The transaction is as before.
    #[error("the params cannot be written as JSON: {0}")]
    Params(#[source] serde_json::Error),
    /// The database failed, or aborted the transaction: repeat it as a whole where it says so (40001, 40P01).
    #[error(transparent)]
    Database(sqlx::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let refusal = |error: &PgDatabaseError| Refusal {
            sqlstate: error.code().to_owned(),
            message: error.message().to_owned(),
            detail: error.detail().map(str::to_owned),
            hint: error.hint().map(str::to_owned),
        };
        let Some(answer) = error.as_database_error().and_then(|e| e.try_downcast_ref()) else {
            return Self::Database(error);
        };
        match PgDatabaseError::code(answer) {
            "SX001" => Self::UnknownJob(refusal(answer)),
            "SX002" => Self::DeletedJob(refusal(answer)),
            "SX003" => Self::PausedJob(refusal(answer)),
            "SX010" => Self::InvalidArgument(refusal(answer)),
            "SX011" | "SX012" => Self::InvalidParams(refusal(answer)),
            "SX020" => Self::TooManyItems(refusal(answer)),
            _ => Self::Database(error),
        }
    }
}

impl Error {
    /// Returns the platform's refusal, if it is one.
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::UnknownJob(refusal)
            | Self::DeletedJob(refusal)
            | Self::PausedJob(refusal)
            | Self::InvalidArgument(refusal)
            | Self::InvalidParams(refusal)
            | Self::TooManyItems(refusal) => Some(refusal),
            Self::Params(_) | Self::Database(_) => None,
        }
    }
}
