//! Values of each job, for the metrics of each scheduler.

use crate::{Store, StoreError};

/// Maximum number of jobs that are read, by name.
pub const MAX_READ_JOBS: i64 = 10_000;

/// Values of a job; of several, the worst of them.
#[derive(Clone, PartialEq, Debug)]
pub struct JobReading {
    /// The job's name; `None`: all that come after the named ones.
    pub job: Option<String>,
    /// The number of jobs: 1, but for those that come after.
    pub jobs: i64,
    /// The Unix time at which the newest success of the 100 newest executions ended; of several the earliest.
    pub last_success_s: Option<f64>,
    /// The Unix time at which the next unclaimed firing is due; of several the earliest. `None`: paused, or none.
    pub next_firing_s: Option<f64>,
    /// Executions that failed for good since that success, of the 100 newest; of several the most.
    pub failures: i64,
}

/// Reads the values of the first `named` jobs by name, and those of the others up to [`MAX_READ_JOBS`] together, last.
///
/// Few rows of each job: the newest executions up to the last success.
pub async fn read(store: &Store, named: i64) -> Result<Vec<JobReading>, StoreError> {
    Ok(sqlx::query_as!(
        JobReading,
        r#"-- job_readings
        WITH j AS MATERIALIZED (
            SELECT id, name, row_number() OVER (ORDER BY name) AS place,
                   CASE WHEN status = 'active' THEN next_fire_at END AS next_fire_at
            FROM sexton.jobs WHERE deleted_at IS NULL AND name NOT LIKE 'verify.%' ORDER BY name LIMIT $2),
        r AS (
            SELECT CASE WHEN j.place <= $1 THEN j.name END AS job, j.next_fire_at, s.finished_at, f.failures
            FROM j
            LEFT JOIN LATERAL (
                SELECT n.claimed_at, n.finished_at
                FROM (SELECT e.state, e.claimed_at, e.finished_at FROM sexton.executions e
                      WHERE e.job_id = j.id ORDER BY e.claimed_at DESC LIMIT 100) n
                WHERE n.state = 'succeeded' LIMIT 1) s ON true
            CROSS JOIN LATERAL (
                SELECT count(*) FILTER (WHERE n.state IN ('failed', 'discarded')) AS failures
                FROM (SELECT e.state FROM sexton.executions e
                      WHERE e.job_id = j.id AND e.claimed_at > coalesce(s.claimed_at, '-infinity')
                      ORDER BY e.claimed_at DESC LIMIT 100) n) f)
        SELECT job, count(*) AS "jobs!", extract(epoch FROM min(finished_at))::float8 AS last_success_s,
               extract(epoch FROM min(next_fire_at))::float8 AS next_firing_s, max(failures) AS "failures!"
        FROM r GROUP BY job ORDER BY job NULLS LAST"#,
        named,
        MAX_READ_JOBS
    )
    .fetch_all(store.with_timeout())
    .await?)
}
