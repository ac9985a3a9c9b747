//! Jobs that are due, as they are read.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::cron::Dst;
use sexton_model::id::JobId;
use sexton_model::job::{Misfire, MisfirePolicy, Overlap, Schedule};
use sexton_model::overlap::UnderWay;
use sexton_model::plan::{Timetable, TimetableError};
use sexton_model::pool::PoolName;
use sexton_model::zone::{Zone, tz_data_version};
use uuid::Uuid;

use crate::StoreError;
use crate::error::known;

/// A job whose next firing is due, locked by the transaction that read it.
#[derive(Clone, PartialEq, Debug)]
pub struct DueJob {
    /// The job.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// When it fires.
    pub schedule: Schedule,
    /// The zone that is meant in.
    pub timezone: Zone,
    /// What a change of its clocks means.
    pub dst: Dst,
    /// Its cursor was computed by older data of the zones, as the first firing after this instant.
    pub outdated_since: Option<DateTime<Utc>>,
    /// The data that its cursor was computed by; `None`: not known.
    pub tz_version: Option<String>,
    /// What its executions are made of.
    pub task_type: String,
    /// See `task_type`.
    pub target: Option<String>,
    /// See `task_type`.
    pub params: Value,
    /// See `task_type`.
    pub pool: PoolName,
    /// See `task_type`.
    pub idempotency_template: Option<String>,
    /// What a firing does while an earlier execution is under way.
    pub overlap: Overlap,
    /// What happens to late firings.
    pub misfire: Misfire,
    /// The first firing that is not accounted for yet.
    pub next_fire_at: DateTime<Utc>,
    /// After so many failures in a row it is paused instead.
    pub pause_after_failures: Option<u32>,
    /// What has not ended of the job; only looked up where the overlap policy asks, and there no more
    /// closely than it asks.
    pub under_way: UnderWay,
    /// The instant of the decision, by the database's clock.
    pub now: DateTime<Utc>,
}

impl DueJob {
    /// When it fires, ready to be asked.
    ///
    /// # Errors
    ///
    /// [`TimetableError`]: the row was written by hand or by another version.
    pub fn timetable(&self) -> Result<Timetable, TimetableError> {
        Timetable::new(&self.name, &self.schedule, self.timezone, self.dst)
    }
}

/// What is due, as far as it can be read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DueJobs {
    /// The jobs, longest due first.
    pub jobs: Vec<DueJob>,
    /// Due as well, but their rows hold what this program cannot read. One of these must not stop
    /// the others, so they are told apart here; they stay due until somebody corrects them.
    pub unreadable: Vec<UnreadableJob>,
    /// Were due, and are paused now.
    pub paused: Vec<FailingJob>,
    /// Due as well, but their firings replace what is under way, and somebody has just locked a row of
    /// that. They stay due; ask again in a moment.
    pub put_off: Vec<JobId>,
}

/// A job that was paused because its last executions failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailingJob {
    /// The job.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// How many executions in a row failed.
    pub failures: u32,
}

/// A due job whose row was written by hand or by another version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnreadableJob {
    /// The job.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// What cannot be read.
    pub why: String,
}

/// A due job as it stands in its row. The params come as text, because one that this program cannot
/// parse would otherwise fail the whole batch in the driver.
pub(super) struct DueRow {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) schedule_kind: String,
    pub(super) schedule_expression: Option<String>,
    pub(super) timezone: String,
    pub(super) dst: String,
    pub(super) planned_until: Option<DateTime<Utc>>,
    pub(super) tz_version: Option<String>,
    pub(super) task_type: String,
    pub(super) target: Option<String>,
    pub(super) params: String,
    pub(super) pool: String,
    pub(super) idempotency_template: Option<String>,
    pub(super) overlap: String,
    pub(super) misfire_policy: String,
    pub(super) misfire_window_ms: i64,
    pub(super) misfire_limit: i32,
    pub(super) pause_after_failures: Option<i32>,
    pub(super) next_fire_at: DateTime<Utc>,
    pub(super) now: DateTime<Utc>,
}

impl DueRow {
    /// The job in the row.
    ///
    /// # Errors
    ///
    /// [`StoreError::Inconsistent`]: it was written by hand or by another version.
    pub(super) fn read(self) -> Result<DueJob, StoreError> {
        let schedule =
            Schedule::from_columns(&self.schedule_kind, self.schedule_expression.as_deref())
                .map_err(|error| StoreError::Inconsistent {
                    place: "jobs.schedule_expression",
                    value: error.to_string(),
                })?;
        let outdated = self.tz_version.as_deref().is_none_or(|by| by < tz_data_version());
        let outdated_since = self.planned_until.filter(|_| outdated && schedule.kind() == "cron");
        let policy = known("jobs.misfire_policy", &self.misfire_policy, MisfirePolicy::parse)?;
        Ok(DueJob {
            id: JobId::new(self.id),
            name: self.name,
            schedule,
            timezone: known("jobs.timezone", &self.timezone, |name| Zone::parse(name).ok())?,
            dst: known("jobs.dst", &self.dst, Dst::parse)?,
            outdated_since,
            tz_version: self.tz_version,
            task_type: self.task_type,
            target: self.target,
            params: known("jobs.params", &self.params, |text| serde_json::from_str(text).ok())?,
            pool: known("jobs.pool", &self.pool, |text| text.parse().ok())?,
            idempotency_template: self.idempotency_template,
            overlap: known("jobs.overlap", &self.overlap, Overlap::parse)?,
            misfire: Misfire {
                policy,
                window: Duration::from_millis(self.misfire_window_ms as u64),
                limit: self.misfire_limit as u32,
            },
            next_fire_at: self.next_fire_at,
            pause_after_failures: self.pause_after_failures.map(|failures| failures as u32),
            under_way: UnderWay::default(),
            now: self.now,
        })
    }
}
