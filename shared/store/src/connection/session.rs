//! A database session that can be ended from another one.

use std::time::Duration;

use crate::connection::timeout::with_timeout;
use crate::{Store, StoreError};

/// How long ending a session may take, over another connection.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(5);

/// The session of a task's transaction, or of a migration. Cheap to clone; it occupies nothing in the server.
#[derive(Clone, Debug)]
pub struct Session {
    /// The store whose connections end it.
    pub(crate) store: Store,
    pub(crate) pid: i32,
    /// Distinguishes the session from a later one with the same number.
    pub(crate) since: String,
}

impl Session {
    /// Makes the server end it and its running statement, within five seconds; everything uncommitted is rolled back.
    /// Does nothing if it has ended.
    pub async fn end(self) {
        // On failure the server ends it when it notices the lost client.
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
