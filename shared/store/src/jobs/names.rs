//! Reads the names of jobs that other rows refer to.

use std::collections::{BTreeMap, HashMap};

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

/// Returns the names and labels of the jobs of these executions.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list_of_executions(
    store: &Store,
    executions: &[Uuid],
) -> Result<Vec<(String, BTreeMap<String, String>)>, StoreError> {
    let rows = sqlx::query!(
        r#"-- jobs_of_executions
        SELECT coalesce(j.deleted_name, j.name) AS "name!", j.labels FROM sexton.jobs j
        WHERE j.id IN (SELECT e.job_id FROM sexton.executions e WHERE e.id = ANY ($1))"#,
        executions
    )
    .fetch_all(store.with_timeout())
    .await?;
    let labels = |labels| serde_json::from_value(labels).unwrap_or_default();
    Ok(rows.into_iter().map(|row| (row.name, labels(row.labels))).collect())
}
