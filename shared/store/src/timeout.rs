//! A limit for what a process waits for on a connection to the database.
//!
//! The server ends a statement that takes too long and lets go of a client that has vanished. Nothing
//! does so the other way round: an answer that was lost on its way is waited for without end.

use std::io;
use std::time::Duration;

use crate::StoreError;

/// Waits for `statement` for `limit` at most.
///
/// # Errors
///
/// Its own, or [`StoreError::Unavailable`] when the time is up. Whether it was carried out is not
/// known then; its connection is given up.
pub async fn with_timeout<T>(
    limit: Duration,
    statement: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let answer = tokio::time::timeout(limit, statement).await;
    answer.unwrap_or_else(|_| Err(StoreError::Unavailable(timeout_error(limit))))
}

/// That there was none.
pub(crate) fn timeout_error(limit: Duration) -> sqlx::Error {
    let text = format!("no answer within {} s", limit.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text).into()
}
