//! Reads the names of jobs: of those that other rows refer to, and of those that a filter selects.

use std::collections::{BTreeMap, HashMap};

use serde_json::json;
use uuid::Uuid;

use super::JobFilter;
use crate::{Store, StoreError};

/// A job that a filter selects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectedJob {
    /// Its name.
    pub name: String,
    /// Whether it is paused.
    pub paused: bool,
}

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

/// Lists the jobs that a filter selects, by name, at most `limit`: those whose names begin with `prefix`, and with none of `without`.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list_selected(
    store: &Store,
    filter: &JobFilter,
    (prefix, without): (Option<&str>, &[String]),
    limit: i64,
) -> Result<Vec<SelectedJob>, StoreError> {
    let labels = json!(filter.labels);
    Ok(sqlx::query_as!(
        SelectedJob,
        r#"-- selected_jobs
        SELECT name, status = 'paused' AS "paused!" FROM sexton.jobs
        WHERE ($1::text[] IS NULL OR name = ANY ($1))
          AND ($2::text IS NULL OR strpos(lower(name), lower($2)) > 0)
          AND ($3::text IS NULL OR status = $3)
          AND ($4::text IS NULL OR name > $4)
          AND labels @> $5
          AND ($6::text IS NULL OR starts_with(name, $6))
          AND NOT EXISTS (SELECT FROM unnest($7::text[]) p WHERE starts_with(name, p))
          AND deleted_at IS NULL
        ORDER BY name LIMIT $8"#,
        filter.names.as_deref() as Option<&[String]>,
        filter.containing,
        filter.status,
        filter.after,
        labels,
        prefix,
        without,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}
