//! The jobs that are due soonest, and how long attempts take, for the console. Only reads.

use std::time::Duration;

use sexton_model::lint::RunTimes;
use uuid::Uuid;

use crate::{Store, StoreError};

/// Number of each job's executions that are read.
const EXECUTIONS_PER_JOB: i64 = 200;

/// Returns the names of the active jobs that are due soonest, at most `limit`, in that order.
pub async fn list_upcoming(store: &Store, limit: i64) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        "-- soonest_jobs
        SELECT name FROM sexton.jobs WHERE status = 'active' AND next_fire_at IS NOT NULL
        ORDER BY next_fire_at LIMIT $1",
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Returns how long the attempts of each job's last 200 executions took, in the order of `jobs`; jobs whose tasks
/// never ended by themselves are missing.
pub async fn list_run_times(
    store: &Store,
    jobs: &[Uuid],
) -> Result<Vec<(Uuid, RunTimes)>, StoreError> {
    let rows = sqlx::query_file!("src/jobs/run_times.sql", jobs, EXECUTIONS_PER_JOB)
        .fetch_all(store.with_timeout())
        .await?;
    let times = rows.into_iter().filter_map(|row| {
        let p95 = Duration::from_millis(row.p95_ms?.max(0) as u64);
        Some((row.job_id, RunTimes { runs: row.runs as u32, p95 }))
    });
    Ok(times.collect())
}
