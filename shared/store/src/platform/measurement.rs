//! Measurements from the platform's records: when tasks were due, begun and done, by the database's clock.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{Store, StoreError};

/// Maximum number of samples in one answer.
const MAX_SAMPLES: i64 = 1_000_000;
/// Maximum number of jobs in one statement, which has to end within the usual time limit.
const MAX_BATCH_COPIES: u32 = 10_000;

/// The progress of some jobs' executions.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Progress {
    /// Number of executions.
    pub executions: u64,
    /// Number with an unpublished ticket.
    pub unpublished: u64,
    /// Number begun.
    pub begun: u64,
    /// Number succeeded.
    pub succeeded: u64,
    /// Number that ended in another way.
    pub otherwise: u64,
    /// Time from the first start to the last success.
    pub took: Duration,
}

/// Reads the progress of the jobs whose names begin with `prefix`.
pub async fn read_progress(store: &Store, prefix: &str) -> Result<Progress, StoreError> {
    let row = sqlx::query!(
        r#"-- measured_progress
        SELECT count(*) AS "executions!",
               count(*) FILTER (WHERE e.state = 'pending' AND e.ticket_published_at IS NULL) AS "unpublished!",
               count(*) FILTER (WHERE e.started_at IS NOT NULL) AS "begun!",
               count(*) FILTER (WHERE e.state = 'succeeded') AS "succeeded!",
               count(*) FILTER (WHERE e.state IN ('failed', 'discarded', 'cancelled', 'skipped'))
                   AS "otherwise!",
               coalesce(extract(epoch FROM max(e.finished_at) - min(e.started_at)), 0)::float8
                   AS "took!"
        FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id WHERE starts_with(j.name, $1)"#,
        prefix
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok(Progress {
        executions: row.executions as u64,
        unpublished: row.unpublished as u64,
        begun: row.begun as u64,
        succeeded: row.succeeded as u64,
        otherwise: row.otherwise as u64,
        took: Duration::try_from_secs_f64(row.took).unwrap_or_default(),
    })
}

/// Returns the delays from due to begun, in milliseconds, sorted, of the firings after `after`.
pub async fn list_start_lags(
    store: &Store,
    prefix: &str,
    after: DateTime<Utc>,
) -> Result<Vec<f64>, StoreError> {
    let lags = sqlx::query_scalar!(
        r#"-- measured_lags
        SELECT extract(epoch FROM e.started_at - e.scheduled_for)::float8 * 1000 AS "ms!"
        FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
        WHERE starts_with(j.name, $1) AND e.started_at IS NOT NULL AND e.scheduled_for > $2
        ORDER BY 1 LIMIT $3"#,
        prefix,
        after,
        MAX_SAMPLES
    )
    .fetch_all(store.with_timeout())
    .await?;
    Ok(lags)
}

/// Counts the schedulers and workers that are ready.
pub async fn count_ready(store: &Store) -> Result<(u64, u64), StoreError> {
    let row = sqlx::query!(
        r#"-- measured_ready
        SELECT count(*) FILTER (WHERE kind = 'scheduler') AS "schedulers!",
               count(*) FILTER (WHERE kind = 'worker') AS "workers!"
        FROM sexton.instances WHERE ready AND stopped_at IS NULL"#
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok((row.schedulers as u64, row.workers as u64))
}

/// Adds `count` copies of a job under the names `<its name>.<number>`, all due at the same instant. After an error
/// the copies of earlier batches exist.
pub async fn copy_job(
    store: &Store,
    job: &str,
    count: u32,
    due: DateTime<Utc>,
) -> Result<(), StoreError> {
    let mut made = 0;
    while made < count {
        let upto = count.min(made + MAX_BATCH_COPIES);
        copy_batch(store, job, made + 1..=upto, due).await?;
        made = upto;
    }
    Ok(())
}

async fn copy_batch(
    store: &Store,
    job: &str,
    numbers: std::ops::RangeInclusive<u32>,
    due: DateTime<Utc>,
) -> Result<(), StoreError> {
    // A composite value in a SELECT list is computed again for each of its columns, hence LATERAL.
    sqlx::query!(
        "-- measured_copies
        INSERT INTO sexton.jobs SELECT made.*
        FROM sexton.jobs j, generate_series($2::bigint, $3) n, LATERAL jsonb_populate_record(j, jsonb_build_object(
            'id', gen_random_uuid(), 'name', j.name || '.' || n, 'next_fire_at', $4::timestamptz)) made
        WHERE j.name = $1",
        job,
        i64::from(*numbers.start()),
        i64::from(*numbers.end()),
        due
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}
