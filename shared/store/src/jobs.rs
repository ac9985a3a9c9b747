//! Jobs: reads their definitions and applies people's changes.
//!
//! [`apply()`] writes definitions, [`pause()`] and [`resume`] stop and start their firings, [`delete()`] ends them
//! for good. Each is one transaction, recorded in `operator_actions`, and wakes the planners. Nothing here claims a
//! firing; see [`crate::firing`] and [`crate::trigger`].

mod activity;
mod apply;
mod delete;
mod expectations;
mod heartbeat;
mod names;
mod pause;
mod revisions;
pub mod templates;
mod upcoming;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sexton_model::cron::Dst;
use sexton_model::flow::Member;
use sexton_model::job::{
    ConstraintColumns, Expectations, JobSpec, Misfire, MisfirePolicy, OnLocked, Overlap,
    PastPolicy, RetryOverrides, RowLock, Schedule, ScheduleConstraints,
};
use sexton_model::plan::{Cursor, Timetable};
use sexton_model::zone::Zone;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::connection::client_timeout::{WithTimeout, with_client_timeout};
use crate::error::parse_column;
use crate::firing::{day_rule, rate};
use crate::{Store, StoreError};
pub(crate) use expectations::{ExpectationColumns, expectations};

pub use activity::{
    LastExecution, count_failed_by_job, last_executions, list_recent_run_times, list_recent_states,
    list_run_times,
};
pub use apply::{
    Applied, Apply, ApplyError, ChangedJob, ExpectedJob, MAX_APPLIED_JOBS, apply, apply_expecting,
};
pub use delete::{Delete, DeleteError, Deleted, UnderWay, delete};
pub use names::{SelectedJob, list_names, list_of_executions, list_selected};
pub use pause::{PauseError, Resumed, pause, resume};
pub use revisions::{JobRevision, list_revisions};
pub use upcoming::list_upcoming;

/// A row of `jobs`; the fields are named after the columns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Job {
    pub id: Uuid,
    pub name: String,
    pub description: String,
    pub target: Option<String>,
    pub schedule_kind: String,
    pub schedule_expression: Option<String>,
    pub timezone: String,
    pub dst: String,
    pub days: Option<String>,
    pub start_at: Option<String>,
    pub end_at: Option<String>,
    pub exclude: Vec<String>,
    pub jitter_ms: Option<i64>,
    pub max_runs: Option<i32>,
    pub task_type: String,
    pub params: Value,
    pub pool: String,
    pub overlap: String,
    pub misfire_policy: String,
    pub misfire_window_ms: i64,
    pub misfire_limit: i32,
    pub misfire_rate: Option<String>,
    pub max_retries: Option<i32>,
    pub max_timeouts: Option<i32>,
    pub max_crashes: Option<i32>,
    pub retry_delay_ms: Option<i64>,
    pub retry_multiplier: Option<f64>,
    pub retry_max_delay_ms: Option<i64>,
    pub retry_jitter: Option<f64>,
    pub permanent_classes: Option<Vec<String>>,
    pub timeout_ms: i64,
    pub lease_ms: Option<i64>,
    pub lock_key: Option<i64>,
    pub lock_row: Option<String>,
    pub lock_at_most_ms: Option<i64>,
    pub lock_at_least_ms: Option<i64>,
    pub on_locked: String,
    pub idempotency_template: Option<String>,
    pub start_within_ms: Option<i64>,
    pub expect_within_ms: Option<i64>,
    pub max_runtime_ms: Option<i64>,
    pub alert_after: Option<i32>,
    pub recover_after: Option<i32>,
    pub remind_every_ms: Option<i64>,
    pub severity: Option<String>,
    pub heartbeat: Option<Value>,
    pub stale_after_ms: Option<i64>,
    pub pause_after_failures: Option<i32>,
    pub verify_task: Option<String>,
    pub labels: Value,
    pub flow: Option<Value>,
    pub status: String,
    pub paused_by: Option<String>,
    pub paused_why: Option<String>,
    pub paused_at: Option<DateTime<Utc>>,
    pub runs_used: i32,
    pub next_fire_at: Option<DateTime<Utc>>,
    pub next_nominal_at: Option<DateTime<Utc>>,
    pub planned_until: Option<DateTime<Utc>>,
    pub tz_version: Option<String>,
    pub revision: i32,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub deleted_at: Option<DateTime<Utc>>,
}

/// Returns the duration of a column in milliseconds.
fn millis(ms: i64) -> Duration {
    Duration::from_millis(ms.max(0) as u64)
}

impl Job {
    /// The definition in the row.
    ///
    /// # Errors
    ///
    /// [`StoreError::Inconsistent`] when the row was written by hand or by another version.
    pub fn spec(&self) -> Result<JobSpec, StoreError> {
        let labels = self.labels.as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Ok(JobSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            target: self.target.clone(),
            schedule: self.schedule()?,
            constraints: self.constraints()?,
            past: PastPolicy::default(),
            timezone: parse_column("jobs.timezone", &self.timezone, |name| Zone::parse(name).ok())?,
            dst: parse_column("jobs.dst", &self.dst, Dst::parse)?,
            days: day_rule(self.days.as_deref())?,
            task_type: self.task_type.clone(),
            params: self.params.clone(),
            pool: parse_column("jobs.pool", &self.pool, |text| text.parse().ok())?,
            overlap: parse_column("jobs.overlap", &self.overlap, Overlap::parse)?,
            misfire: Misfire {
                policy: parse_column(
                    "jobs.misfire_policy",
                    &self.misfire_policy,
                    MisfirePolicy::parse,
                )?,
                window: millis(self.misfire_window_ms),
                limit: self.misfire_limit as u32,
                rate: rate(self.misfire_rate.as_deref())?,
            },
            retry: RetryOverrides {
                max_retries: self.max_retries.map(|retries| retries as u32),
                max_timeouts: self.max_timeouts.map(|timeouts| timeouts as u32),
                max_crashes: self.max_crashes.map(|crashes| crashes as u32),
                delay: self.retry_delay_ms.map(millis),
                multiplier: self.retry_multiplier,
                max_delay: self.retry_max_delay_ms.map(millis),
                jitter: self.retry_jitter,
                permanent: self.permanent_classes.clone(),
            },
            timeout: millis(self.timeout_ms),
            lease: self.lease_ms.map(millis),
            lock_key: self.lock_key,
            lock_row: RowLock::from_columns(
                self.lock_row.as_deref(),
                self.lock_at_most_ms,
                self.lock_at_least_ms,
            ),
            on_locked: parse_column("jobs.on_locked", &self.on_locked, OnLocked::parse)?,
            idempotency_template: self.idempotency_template.clone(),
            expectations: self.expectations()?,
            heartbeat: self.heartbeat()?,
            stale_after: self.stale_after_ms.map(millis),
            pause_after_failures: self.pause_after_failures.map(|failures| failures as u32),
            verify_task: self.verify_task.clone(),
            paused: false,
            labels: labels.map(|(key, value)| (key.clone(), text(value))).collect(),
            flow: self.flow()?,
        })
    }

    /// Returns what its monitor expects.
    ///
    /// # Errors
    ///
    /// [`StoreError::Inconsistent`] for a severity that this version does not know.
    pub fn expectations(&self) -> Result<Expectations, StoreError> {
        expectations(ExpectationColumns {
            start_within_ms: self.start_within_ms,
            expect_within_ms: self.expect_within_ms,
            max_runtime_ms: self.max_runtime_ms,
            alert_after: self.alert_after,
            recover_after: self.recover_after,
            remind_every_ms: self.remind_every_ms,
            severity: self.severity.as_deref(),
        })
    }

    fn flow(&self) -> Result<Vec<Member>, StoreError> {
        let Some(flow) = &self.flow else { return Ok(Vec::new()) };
        serde_json::from_value(flow.clone()).map_err(|error| StoreError::Inconsistent {
            place: "jobs.flow",
            value: format!("{error} (job {})", self.name),
        })
    }

    fn schedule(&self) -> Result<Schedule, StoreError> {
        Schedule::from_columns(&self.schedule_kind, self.schedule_expression.as_deref()).map_err(
            |error| StoreError::Inconsistent {
                place: "jobs.schedule_expression",
                value: format!("{error} (job {})", self.name),
            },
        )
    }

    fn constraints(&self) -> Result<ScheduleConstraints, StoreError> {
        ScheduleConstraints::from_columns(ConstraintColumns {
            start: self.start_at.as_deref(),
            end: self.end_at.as_deref(),
            exclude: &self.exclude,
            jitter_ms: self.jitter_ms,
            max_runs: self.max_runs,
        })
        .map_err(|error| StoreError::Inconsistent {
            place: "jobs.start_at",
            value: format!("{error} (job {})", self.name),
        })
    }

    /// The job's next firing; `None`: it never fires again by itself.
    ///
    /// # Errors
    ///
    /// As [`Job::spec`].
    pub fn cursor(&self) -> Result<Option<Cursor>, StoreError> {
        let Some(due) = self.next_fire_at else { return Ok(None) };
        let (schedule, constraints) = (self.schedule()?, self.constraints()?);
        Ok(Some(Cursor::from_columns(due, self.next_nominal_at, &schedule, &constraints)))
    }

    pub(crate) fn timetable(&self) -> Result<Timetable, StoreError> {
        let timetable = Timetable::of(&self.spec()?);
        timetable.map(|timetable| timetable.since(self.planned_until)).map_err(|error| {
            StoreError::Inconsistent {
                place: "jobs.schedule_expression",
                value: format!("{error} (job {})", self.name),
            }
        })
    }
}

/// A filter for [`list`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobFilter {
    /// Only these names.
    pub names: Option<Vec<String>>,
    /// Only names that contain this text, ignoring case.
    pub containing: Option<String>,
    /// Only `active` or only `paused`.
    pub status: Option<String>,
    /// Only with all these labels.
    pub labels: BTreeMap<String, String>,
    /// Only names after this one, where the previous page ended.
    pub after: Option<String>,
}

/// Lists jobs by name, at most `limit`.
pub async fn list(store: &Store, filter: &JobFilter, limit: i64) -> Result<Vec<Job>, StoreError> {
    let mut connection = with_client_timeout(Box::pin(store.pool().acquire())).await?;
    read(&mut connection, filter, limit).await
}

/// Returns one job by its name.
pub async fn find(store: &Store, name: &str) -> Result<Option<Job>, StoreError> {
    let filter = JobFilter { names: Some(vec![name.to_owned()]), ..JobFilter::default() };
    Ok(list(store, &filter, 1).await?.pop())
}

/// Returns one job by its name, or the most recently deleted job of that name if none exists.
pub async fn find_including_deleted(store: &Store, name: &str) -> Result<Option<Job>, StoreError> {
    if let Some(job) = find(store, name).await? {
        return Ok(Some(job));
    }
    let given_up = sqlx::query_scalar!(
        "-- deleted_job
        SELECT name FROM sexton.jobs WHERE deleted_name = $1 ORDER BY deleted_at DESC LIMIT 1",
        name
    )
    .fetch_optional(store.with_timeout())
    .await?;
    match given_up {
        Some(internal) => find(store, &internal).await,
        None => Ok(None),
    }
}

/// Lists deleted jobs with the names that they had, the latest deletion first, after the one with this deletion and
/// id; at most `limit`.
pub async fn list_deleted(
    store: &Store,
    filter: &JobFilter,
    after: Option<(DateTime<Utc>, Uuid)>,
    limit: i64,
) -> Result<Vec<Job>, StoreError> {
    let labels = json!(filter.labels);
    let internal = sqlx::query_scalar!(
        "-- deleted_jobs
        SELECT name FROM sexton.jobs
        WHERE deleted_at IS NOT NULL
          AND ($1::text IS NULL OR strpos(lower(deleted_name), lower($1)) > 0)
          AND ($3::timestamptz IS NULL OR (deleted_at, id) < ($3, $4::uuid))
          AND labels @> $5
        ORDER BY deleted_at DESC, id DESC LIMIT $2",
        filter.containing,
        limit,
        after.map(|after| after.0),
        after.map(|after| after.1),
        labels
    )
    .fetch_all(store.with_timeout())
    .await?;
    let filter = JobFilter { names: Some(internal), ..JobFilter::default() };
    let mut jobs = list(store, &filter, limit).await?;
    jobs.sort_by_key(|job| std::cmp::Reverse((job.deleted_at, job.id)));
    Ok(jobs)
}

/// Returns up to five names that contain `text` or are contained in it, for "did you mean".
pub async fn similar_names(store: &Store, text: &str) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        "-- similar_job_names
        SELECT name FROM sexton.jobs
        WHERE deleted_at IS NULL
          AND (strpos(lower(name), lower($1)) > 0 OR strpos(lower($1), lower(name)) > 0
               OR lower(split_part(name, '.', 2)) = lower(split_part($1, '.', 2)))
        ORDER BY name LIMIT 5",
        text
    )
    .fetch_all(store.with_timeout())
    .await?)
}

async fn read(
    connection: &mut PgConnection,
    filter: &JobFilter,
    limit: i64,
) -> Result<Vec<Job>, StoreError> {
    let labels = json!(filter.labels);
    Ok(sqlx::query_as!(
        Job,
        r#"-- read_jobs
        SELECT id, coalesce(deleted_name, name) AS "name!", description, target, schedule_kind, schedule_expression, timezone, dst, days,
               start_at, end_at, exclude, jitter_ms, max_runs, task_type, params, pool, overlap,
               misfire_policy, misfire_window_ms, misfire_limit, misfire_rate, max_retries,
               max_timeouts, max_crashes, retry_delay_ms, retry_multiplier, retry_max_delay_ms,
               retry_jitter, permanent_classes, timeout_ms, lease_ms, lock_key, lock_row, lock_at_most_ms,
               lock_at_least_ms, on_locked,
               idempotency_template, start_within_ms, expect_within_ms, max_runtime_ms, alert_after, recover_after,
               remind_every_ms, severity, heartbeat, stale_after_ms, pause_after_failures, verify_task, labels, flow, status, paused_by,
               paused_why, paused_at, runs_used, next_fire_at, next_nominal_at, planned_until, tz_version, revision, created_at, updated_at, deleted_at
        FROM sexton.jobs
        WHERE ($1::text[] IS NULL OR name = ANY ($1))
          AND ($2::text IS NULL OR strpos(lower(name), lower($2)) > 0)
          AND ($3::text IS NULL OR status = $3)
          AND ($4::text IS NULL OR name > $4)
          AND labels @> $6
          AND ($1::text[] IS NOT NULL OR deleted_at IS NULL)
        ORDER BY jobs.name LIMIT $5"#,
        filter.names.as_deref() as Option<&[String]>,
        filter.containing,
        filter.status,
        filter.after,
        limit,
        labels
    )
    .fetch_all(WithTimeout(connection))
    .await?)
}
