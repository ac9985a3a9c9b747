//! Why a lock was not taken, and why one was not released.

use sqlx::postgres::PgDatabaseError;

use crate::table_problems::TableProblems;

/// Why a lock was not taken. The work has not begun, and no lock is held.
///
/// That another holder has the lock is an answer and no error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// A name, a time or a table's name is wrong. Correct the call.
    #[error("{0}")]
    Invalid(String),
    /// The tick is one that no working clock names now (SX030), or infinite (SX010). Set the clock of this instance; the
    /// others run the job meanwhile.
    #[error("{0}")]
    Tick(String),
    /// The connection goes through a pooler that gives a session to several clients in turn.
    #[error(
        "a lock of a session needs a session of its own, and this connection goes through a pooler that hands sessions out \
         by the transaction: connect to PostgreSQL itself (DATABASE_DIRECT_URL, or PgBouncer with pool_mode = session), or \
         use LockRow or TransactionLock, which work through any pooler"
    )]
    SharedSession,
    /// The table of lock rows is missing, or has another shape.
    #[error("{0}")]
    Table(TableProblems),
    /// The role may not do this (42501).
    #[error(
        "the role of this connection lacks a privilege: {}; grant it, for ticks by membership in sexton_producer",
        message(.0)
    )]
    Forbidden(#[source] sqlx::Error),
    /// The platform's functions are not there (42883, 3F000).
    #[error(
        "the database has no function sexton.guard_try: run `sexton migrate` on it, or take the lock without a tick ({})",
        message(.0)
    )]
    NoTicks(#[source] sqlx::Error),
    /// The database did not answer, or refused the statement for a reason of its own. Try again at the next tick.
    #[error("the database did not take the lock: {0}")]
    Database(#[source] sqlx::Error),
    /// The locks were closed, or their runtime is shutting down.
    #[error("the connection of the locks was closed by this program")]
    Closed,
}

/// The SQLSTATE of an error of the server.
pub(crate) fn sqlstate(error: &sqlx::Error) -> Option<&str> {
    let error: &PgDatabaseError = error.as_database_error()?.try_downcast_ref()?;
    Some(error.code())
}

/// An error in the words that callers show: the server's message with its hint.
fn message(error: &sqlx::Error) -> String {
    let server: Option<&PgDatabaseError> =
        error.as_database_error().and_then(|error| error.try_downcast_ref());
    server.map_or_else(
        || error.to_string(),
        |server| match server.hint() {
            Some(hint) => format!("{}. {hint}", server.message()),
            None => server.message().to_owned(),
        },
    )
}

impl LockError {
    /// Whether another try can succeed without a change of the call, the role or the database.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Database(_) | Self::Closed)
    }

    /// The error for a statement of a tick.
    pub(crate) fn of_tick(error: sqlx::Error) -> Self {
        match sqlstate(&error) {
            Some("SX010" | "SX030" | "22008") => Self::Tick(message(&error)),
            Some("42883" | "3F000") => Self::NoTicks(error),
            _ => error.into(),
        }
    }

    /// The same once more, for calls that waited for the same connection.
    pub(crate) fn repeated(&self) -> Self {
        match self {
            Self::SharedSession => Self::SharedSession,
            Self::Database(error) => Self::lost_connection(error.to_string()),
            other => Self::lost_connection(other.to_string()),
        }
    }

    pub(crate) fn lost_connection(why: String) -> Self {
        Self::Database(std::io::Error::other(why).into())
    }

    pub(crate) fn timed_out(what: &str, after: std::time::Duration) -> Self {
        let text = format!("{what} took longer than {} s", after.as_secs());
        Self::Database(std::io::Error::new(std::io::ErrorKind::TimedOut, text).into())
    }
}

impl From<sqlx::Error> for LockError {
    fn from(error: sqlx::Error) -> Self {
        match sqlstate(&error) {
            Some("42501") => Self::Forbidden(error),
            _ => Self::Database(error),
        }
    }
}

/// What went wrong at the end: while the work ran, or before, the lock may have been free.
///
/// Another instance may have done the same work beside this one. What the work has written stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The lock was lost before its release: its connection ended, or its row belongs to another holder.
    #[error(
        "the lock was lost before it was released, so another instance may have run beside this one"
    )]
    Lost,
    /// The release was not answered, so the lock may have been lost shortly before. It becomes free by itself.
    #[error(
        "the release of the lock was not answered, so whether it was held to the end is unknown; it becomes free by itself: \
         {0}"
    )]
    Unanswered(String),
}
