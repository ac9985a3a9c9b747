//! Why a simulation stops.

use sexton_store::StoreError;
use sexton_store::operator::OperatorError;
use sexton_store::trigger::TriggerError;

/// The reason.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stop {
    /// An invariant is violated.
    #[error("{0}")]
    Broken(String),
    /// The database is away, which shows nothing.
    #[error("the simulation's database: {0}")]
    Server(#[source] StoreError),
}

impl Stop {
    pub(super) fn broken(text: impl Into<String>) -> Self {
        Self::Broken(text.into())
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        if error.is_transient() {
            return Self::Server(error);
        }
        Self::Broken(format!("the database refuses a statement of the protocol: {error}"))
    }
}

impl From<sqlx::Error> for Stop {
    fn from(error: sqlx::Error) -> Self {
        Self::Server(error.into())
    }
}

impl From<OperatorError> for Stop {
    fn from(error: OperatorError) -> Self {
        match error {
            OperatorError::Store(error) => error.into(),
            other => Self::Broken(format!("an operator is refused: {other}")),
        }
    }
}

impl From<TriggerError> for Stop {
    fn from(error: TriggerError) -> Self {
        match error {
            TriggerError::Store(error) => error.into(),
            other => Self::Broken(format!("a trigger is refused: {other}")),
        }
    }
}
