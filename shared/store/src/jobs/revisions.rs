//! The revisions of a job, for people.

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use crate::{Store, StoreError};

/// A row of `job_revisions`.
#[derive(Clone, PartialEq, Debug)]
pub struct JobRevision {
    /// Its number.
    pub number: i32,
    /// From when on it holds.
    pub valid_from: DateTime<Utc>,
    /// Schedule and policies, by the names of the columns of `jobs`.
    pub definition: Value,
}

/// Returns a job's newest revisions, at most `limit`, the newest first.
///
/// # Errors
///
/// Those of the database.
pub async fn list_revisions(
    store: &Store,
    job: Uuid,
    limit: i64,
) -> Result<Vec<JobRevision>, StoreError> {
    Ok(sqlx::query_as!(
        JobRevision,
        "-- newest_revisions
        SELECT revision AS number, valid_from, definition FROM sexton.job_revisions
        WHERE job_id = $1 ORDER BY revision DESC LIMIT $2",
        job,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}
