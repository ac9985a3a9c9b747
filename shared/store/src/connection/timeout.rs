//! A time limit for waiting on a database connection.
//!
//! The server ends a statement that takes too long, and drops a client that has vanished. The client has no such
//! protection: it would wait for a lost answer for ever.

use std::io;
use std::time::Duration;

use crate::StoreError;

/// Waits for `statement` for at most `limit`.
///
/// # Errors
///
/// Its own, or [`StoreError::Unavailable`] when the time is up. Whether the statement took effect is then unknown;
/// its connection is given up.
pub async fn with_timeout<T>(
    limit: Duration,
    statement: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let answer = tokio::time::timeout(limit, statement).await;
    answer.unwrap_or_else(|_| Err(StoreError::Unavailable(timeout_error(limit))))
}

/// The error for an answer that did not arrive in time.
pub(crate) fn timeout_error(limit: Duration) -> sqlx::Error {
    let text = format!("no answer within {} s", limit.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text).into()
}
