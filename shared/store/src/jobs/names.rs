//! Reads the names of jobs that other rows refer to.

use std::collections::HashMap;

use uuid::Uuid;

use crate::{Store, StoreError};

/// Returns the names of these jobs, of deleted ones those that they had; those that retention has removed are missing.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list_names(store: &Store, jobs: &[Uuid]) -> Result<HashMap<Uuid, String>, StoreError> {
    let rows = sqlx::query!(
        r#"-- list_job_names
        SELECT id, coalesce(deleted_name, name) AS "name!" FROM sexton.jobs WHERE id = ANY ($1)"#,
        jobs
    )
    .fetch_all(store.with_timeout())
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.name)).collect())
}
