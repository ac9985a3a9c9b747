//! The latest executions of many jobs: their states, how long their attempts took, how many are failed. Only reads, each
//! by one statement that reads a bounded number of rows of each job by an index.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::lint::RunTimes;
use uuid::Uuid;

use crate::{Store, StoreError};

/// Number of each job's executions whose attempts [`list_run_times`] reads.
const MAX_TIMED_EXECUTIONS: i64 = 200;

/// The most recently claimed execution of a job.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LastExecution {
    #[serde(skip)]
    pub job_id: Uuid,
    pub id: Uuid,
    pub state: String,
    pub scheduled_for: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// Returns the most recently claimed execution of each of these jobs, except jobs without any.
pub async fn last_executions(
    store: &Store,
    jobs: &[Uuid],
) -> Result<Vec<LastExecution>, StoreError> {
    Ok(sqlx::query_file_as!(LastExecution, "src/jobs/last_executions.sql", jobs)
        .fetch_all(store.with_timeout())
        .await?)
}

/// Returns the states of each job's last `limit` executions, the oldest claim first; jobs without any are missing.
pub async fn list_recent_states(
    store: &Store,
    jobs: &[Uuid],
    limit: i64,
) -> Result<Vec<(Uuid, Vec<String>)>, StoreError> {
    let rows = sqlx::query_file!("src/jobs/recent_states.sql", jobs, limit)
        .fetch_all(store.with_timeout())
        .await?;
    Ok(rows.into_iter().map(|row| (row.job_id, row.states)).collect())
}

/// Counts the failed executions of each job, up to `limit`; jobs without any are missing.
pub async fn count_failed_by_job(
    store: &Store,
    jobs: &[Uuid],
    limit: i64,
) -> Result<Vec<(Uuid, i64)>, StoreError> {
    let rows = sqlx::query_file!("src/jobs/failed_by_job.sql", jobs, limit)
        .fetch_all(store.with_timeout())
        .await?;
    Ok(rows.into_iter().map(|row| (row.job_id, row.failed)).collect())
}

/// Returns how long the attempts of each job's last 200 executions took, in the order of `jobs`; jobs whose tasks
/// never ended by themselves are missing.
pub async fn list_run_times(
    store: &Store,
    jobs: &[Uuid],
) -> Result<Vec<(Uuid, RunTimes)>, StoreError> {
    list_recent_run_times(store, jobs, MAX_TIMED_EXECUTIONS).await
}

/// As [`list_run_times`], of each job's last `limit` executions.
pub async fn list_recent_run_times(
    store: &Store,
    jobs: &[Uuid],
    limit: i64,
) -> Result<Vec<(Uuid, RunTimes)>, StoreError> {
    let rows = sqlx::query_file!("src/jobs/run_times.sql", jobs, limit)
        .fetch_all(store.with_timeout())
        .await?;
    let times = rows.into_iter().filter_map(|row| {
        let p95 = Duration::from_millis(row.p95_ms?.max(0) as u64);
        Some((row.job_id, RunTimes { runs: row.runs as u32, p95 }))
    });
    Ok(times.collect())
}
