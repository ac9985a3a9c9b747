//! Jobs whose firings are late or set aside, for operators to list and decide.

use chrono::{DateTime, Utc};
use sexton_model::id::JobId;
use uuid::Uuid;

use super::due::{DueJobs, DueRow};
use super::{ClaimTransaction, under_way};
use crate::connection::client_timeout::{WithTimeout, with_client_timeout};
use crate::{Now, Store, StoreError};

/// Consecutive late firings that were set aside while catch-up was held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldRun {
    /// The job.
    pub job_id: JobId,
    /// Its name.
    pub job_name: String,
    /// Nominal time of the first.
    pub first: DateTime<Utc>,
    /// Nominal time of the last.
    pub last: DateTime<Utc>,
    /// Number of firings.
    pub count: u32,
    /// When they were set aside.
    pub held_at: DateTime<Utc>,
    /// Whether the job is paused now.
    pub paused: bool,
}

/// Returns active jobs with a due firing, by name; locks and changes nothing. `names`: only these.
pub async fn list_due_now(
    store: &Store,
    names: Option<&[String]>,
    limit: i64,
    now: Now,
) -> Result<DueJobs, StoreError> {
    let mut connection = with_client_timeout(Box::pin(store.pool().acquire())).await?;
    let rows = sqlx::query_as!(
        DueRow,
        r#"-- jobs_due_now
        SELECT id, name, schedule_kind, schedule_expression, timezone, dst, days, start_at,
               end_at, exclude, jitter_ms, max_runs, runs_used, next_nominal_at, planned_until,
               tz_version, task_type, target,
               params::text AS "params!", pool, idempotency_template, templated, overlap, misfire_policy,
               misfire_window_ms, misfire_limit, misfire_rate, pause_after_failures,
               next_fire_at AS "next_fire_at!",
               coalesce($1, now()) AS "now!"
        FROM sexton.jobs
        WHERE status = 'active' AND next_fire_at <= coalesce($1, now())
          AND ($3::text[] IS NULL OR name = ANY ($3))
        ORDER BY name LIMIT $2"#,
        now,
        limit,
        names as Option<&[String]>
    )
    .fetch_all(WithTimeout(&mut *connection))
    .await?;
    let mut due = DueJobs::read(rows);
    under_way::fill_in_under_way(&mut connection, &mut due, false).await?;
    Ok(due)
}

/// Returns the jobs with firings set aside, by name, as if the first of these were due; locks nothing.
pub async fn list_held_jobs(
    store: &Store,
    names: Option<&[String]>,
    limit: i64,
    now: Now,
) -> Result<DueJobs, StoreError> {
    let mut connection = with_client_timeout(Box::pin(store.pool().acquire())).await?;
    let rows = sqlx::query_as!(
        DueRow,
        r#"-- jobs_of_held_firings
        SELECT j.id, j.name, j.schedule_kind, j.schedule_expression, j.timezone, j.dst, j.days,
               j.start_at, j.end_at, j.exclude, j.jitter_ms, j.max_runs, j.runs_used,
               NULL::timestamptz AS next_nominal_at, j.planned_until, j.tz_version, j.task_type, j.target, j.params::text AS "params!",
               j.pool, j.idempotency_template, j.templated, j.overlap, j.misfire_policy, j.misfire_window_ms,
               j.misfire_limit, j.misfire_rate, j.pause_after_failures,
               (SELECT min(h.first_firing) FROM sexton.held_firings h WHERE h.job_id = j.id)
                   AS "next_fire_at!",
               coalesce($1, now()) AS "now!"
        FROM sexton.jobs j
        WHERE EXISTS (SELECT FROM sexton.held_firings h WHERE h.job_id = j.id)
          AND ($2::text[] IS NULL OR j.name = ANY ($2))
        ORDER BY j.name LIMIT $3"#,
        now,
        names as Option<&[String]>,
        limit
    )
    .fetch_all(WithTimeout(&mut *connection))
    .await?;
    let mut due = DueJobs::read(rows);
    under_way::fill_in_under_way(&mut connection, &mut due, false).await?;
    Ok(due)
}

/// Returns the firings that are set aside, by job and instant. `names`: only of these jobs.
pub async fn list_held_runs(
    store: &Store,
    names: Option<&[String]>,
    limit: i64,
) -> Result<Vec<HeldRun>, StoreError> {
    let rows = sqlx::query_as!(
        HeldRow,
        r#"-- held_runs
        SELECT h.job_id, j.name AS job_name, h.first_firing, h.last_firing, h.count, h.held_at,
               j.status = 'paused' AS "paused!"
        FROM sexton.held_firings h JOIN sexton.jobs j ON j.id = h.job_id
        WHERE $1::text[] IS NULL OR j.name = ANY ($1)
        ORDER BY j.name, h.first_firing LIMIT $2"#,
        names as Option<&[String]>,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?;
    Ok(rows.into_iter().map(HeldRow::run).collect())
}

struct HeldRow {
    job_id: Uuid,
    job_name: String,
    first_firing: DateTime<Utc>,
    last_firing: DateTime<Utc>,
    count: i32,
    held_at: DateTime<Utc>,
    paused: bool,
}

impl HeldRow {
    fn run(self) -> HeldRun {
        HeldRun {
            job_id: JobId::new(self.job_id),
            job_name: self.job_name,
            first: self.first_firing,
            last: self.last_firing,
            count: self.count.max(0) as u32,
            held_at: self.held_at,
            paused: self.paused,
        }
    }
}

/// Jobs with firings set aside, and these firings.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct HeldJobs {
    /// The jobs, in the order of their ids.
    pub(crate) due: DueJobs,
    /// Their runs, by job and instant.
    pub(crate) runs: Vec<HeldRun>,
    /// The last job; `None`: no job was left.
    pub(crate) last: Option<JobId>,
    /// The instant of the decision; `None`: nothing is set aside.
    pub(crate) now: Option<DateTime<Utc>>,
}

impl ClaimTransaction<'_> {
    /// Locks up to `limit` jobs with firings set aside, in the order of their ids after `after`, as if the first of
    /// these were due. Waits for jobs that another transaction has locked.
    pub(crate) async fn held_jobs(
        &mut self,
        names: Option<&[String]>,
        after: Option<JobId>,
        limit: i64,
    ) -> Result<HeldJobs, StoreError> {
        let rows = sqlx::query_as!(
            DueRow,
            r#"-- lock_held_jobs
            SELECT j.id, j.name, j.schedule_kind, j.schedule_expression, j.timezone, j.dst, j.days,
                   j.start_at, j.end_at, j.exclude, j.jitter_ms, j.max_runs, j.runs_used,
               NULL::timestamptz AS next_nominal_at, j.planned_until, j.tz_version, j.task_type, j.target,
                   j.params::text AS "params!", j.pool, j.idempotency_template, j.templated, j.overlap,
                   j.misfire_policy, j.misfire_window_ms, j.misfire_limit, j.misfire_rate, j.pause_after_failures,
                   (SELECT min(h.first_firing) FROM sexton.held_firings h WHERE h.job_id = j.id)
                       AS "next_fire_at!",
                   coalesce($1, now()) AS "now!"
            FROM sexton.jobs j
            WHERE EXISTS (SELECT FROM sexton.held_firings h WHERE h.job_id = j.id)
              AND ($2::text[] IS NULL OR j.name = ANY ($2))
              AND j.id > $3
            ORDER BY j.id LIMIT $4
            FOR NO KEY UPDATE OF j"#,
            self.now,
            names as Option<&[String]>,
            after.map_or(Uuid::nil(), JobId::get),
            limit
        )
        .fetch_all(WithTimeout(&mut *self.tx))
        .await?;
        let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        let last = ids.last().copied().map(JobId::new);
        let now = rows.first().map(|row| row.now);
        let mut due = DueJobs::read(rows);
        under_way::fill_in_under_way(&mut self.tx, &mut due, false).await?;
        // Read after the locks: of two operators who decide at once, the second finds nothing.
        let runs = sqlx::query_as!(
            HeldRow,
            r#"-- held_runs_of_jobs
            SELECT h.job_id, j.name AS job_name, h.first_firing, h.last_firing, h.count, h.held_at,
                   j.status = 'paused' AS "paused!"
            FROM sexton.held_firings h JOIN sexton.jobs j ON j.id = h.job_id
            WHERE h.job_id = ANY ($1) ORDER BY h.job_id, h.first_firing"#,
            &ids
        )
        .fetch_all(WithTimeout(&mut *self.tx))
        .await?;
        Ok(HeldJobs { due, runs: runs.into_iter().map(HeldRow::run).collect(), last, now })
    }

    /// Counts the runs claimed from held firings, for jobs that have a limit of runs, in the transaction that claims
    /// them. A job that reaches its limit never fires again; if it is due all the same, the planner records that and
    /// ends the job.
    pub(crate) async fn count_runs(&mut self, claimed: &[JobId]) -> Result<u64, StoreError> {
        let jobs: Vec<Uuid> = claimed.iter().map(|job| job.get()).collect();
        let done = sqlx::query!(
            "-- count_released_runs
            UPDATE sexton.jobs SET runs_used = runs_used + c.runs,
                next_fire_at = CASE WHEN runs_used + c.runs < max_runs
                    OR next_fire_at <= coalesce($2, now()) THEN next_fire_at END,
                next_nominal_at = CASE WHEN runs_used + c.runs < max_runs
                    OR next_fire_at <= coalesce($2, now()) THEN next_nominal_at END
            FROM (SELECT job_id, count(*)::int AS runs FROM unnest($1::uuid[]) AS u (job_id)
                  GROUP BY job_id) c
            WHERE jobs.id = c.job_id AND max_runs IS NOT NULL",
            &jobs,
            self.now
        )
        .execute(WithTimeout(&mut *self.tx))
        .await?;
        Ok(done.rows_affected())
    }

    /// Deletes held firings, once they have another disposition in this transaction.
    pub(crate) async fn forget_held(&mut self, runs: &[HeldRun]) -> Result<u64, StoreError> {
        let jobs: Vec<Uuid> = runs.iter().map(|run| run.job_id.get()).collect();
        let first: Vec<DateTime<Utc>> = runs.iter().map(|run| run.first).collect();
        let done = sqlx::query!(
            "-- forget_held_firings
            DELETE FROM sexton.held_firings h USING unnest($1::uuid[], $2::timestamptz[]) AS r (job_id, first)
            WHERE h.job_id = r.job_id AND h.first_firing = r.first",
            &jobs,
            &first
        )
        .execute(WithTimeout(&mut *self.tx))
        .await?;
        Ok(done.rows_affected())
    }
}
