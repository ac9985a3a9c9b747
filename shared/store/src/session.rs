//! A session of the server's that can be ended from outside of it.

use std::time::Duration;

use crate::timeout::with_timeout;
use crate::{Store, StoreError};

/// How long ending a session may take; it goes over another connection.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(5);

/// The session of a task's transaction, or of a migration. Cheap to clone; holding it holds nothing in the server.
#[derive(Clone, Debug)]
pub struct Session {
    /// Whose connections end it.
    pub(crate) store: Store,
    pub(crate) pid: i32,
    /// Tells the session from a later one with the same number.
    pub(crate) since: String,
}

impl Session {
    /// Tells the server to end it, with whatever runs in it, within five seconds; all that was not
    /// committed is taken back. Nothing happens if it has ended.
    pub async fn end(self) {
        // If it cannot be ended now, the server does so itself when it notices the lost client.
        let _ =
            with_timeout(TERMINATE_TIMEOUT, end_session(&self.store, self.pid, &self.since)).await;
    }
}

async fn end_session(store: &Store, pid: i32, since: &str) -> Result<(), StoreError> {
    sqlx::query_scalar!(
        "-- end_session
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE pid = $1 AND backend_start::text = $2",
        pid,
        since
    )
    .fetch_optional(store.with_timeout())
    .await?;
    Ok(())
}
