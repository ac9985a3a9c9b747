//! Due jobs, as they are read.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::cron::{DayRule, Dst};
use sexton_model::id::JobId;
use sexton_model::job::{
    ConstraintColumns, Misfire, MisfirePolicy, Overlap, Schedule, ScheduleConstraints,
};
use sexton_model::plan::overlap::UnderWay;
use sexton_model::plan::{Cursor, Timetable, TimetableError};
use sexton_model::pool::PoolName;
use sexton_model::rate::Rate;
use sexton_model::zone::{Zone, tz_data_version};
use uuid::Uuid;

use crate::StoreError;
use crate::error::parse_column;

/// A job whose next firing is due, or will be within [`CLAIM_LEAD_MS`](super::CLAIM_LEAD_MS), locked by the transaction
/// that read it.
#[derive(Clone, PartialEq, Debug)]
pub struct DueJob {
    /// The job.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// When it fires.
    pub schedule: Schedule,
    /// Limits of the schedule.
    pub constraints: ScheduleConstraints,
    /// Number of claimed firings that count against the limit of runs.
    pub runs_used: u32,
    /// The schedule's time zone.
    pub timezone: Zone,
    /// The policy for changes of the zone's clocks.
    pub dst: Dst,
    /// How the day fields of a cron expression are combined.
    pub days: Option<DayRule>,
    /// Up to when its firings are accounted for; `None`: unknown.
    pub planned_until: Option<DateTime<Utc>>,
    /// Set if older time zone data computed its cursor, as the first firing after this instant.
    pub outdated_since: Option<DateTime<Utc>>,
    /// Version of the data that computed its cursor; `None`: unknown.
    pub tz_version: Option<String>,
    /// The task type of its executions.
    pub task_type: String,
    /// Copied into its executions.
    pub target: Option<String>,
    /// Copied into its executions.
    pub params: Value,
    /// Copied into its executions.
    pub pool: PoolName,
    /// The template of its executions' idempotency keys.
    pub idempotency_template: Option<String>,
    /// Whether its params or its idempotency key have placeholders, which the database fills.
    pub templated: bool,
    /// The policy for a firing while an earlier execution is under way.
    pub overlap: Overlap,
    /// The policy for late firings.
    pub misfire: Misfire,
    /// The nominal time of the first firing that is not accounted for yet. It is due, by the data that computed its
    /// cursor.
    pub next_fire_at: DateTime<Utc>,
    /// Number of failures in a row after which it is paused.
    pub pause_after_failures: Option<u32>,
    /// The job's executions that have not ended; read only as far as the overlap policy needs.
    pub under_way: UnderWay,
    /// The instant for which it is planned: the database's clock and [`CLAIM_LEAD_MS`](super::CLAIM_LEAD_MS), or the given
    /// time.
    pub now: DateTime<Utc>,
}

impl DueJob {
    /// Prepares its schedule for computing firings.
    ///
    /// # Errors
    ///
    /// [`TimetableError`]: the row was written by hand or by another version.
    pub fn timetable(&self) -> Result<Timetable, TimetableError> {
        let timetable =
            Timetable::new(&self.name, &self.schedule, self.timezone, self.dst, self.days)?;
        Ok(self.apply_terms(timetable))
    }

    /// Limits the timetable of its schedule by this job's terms.
    pub fn apply_terms(&self, timetable: Timetable) -> Timetable {
        timetable.with_constraints(&self.constraints, &self.name).since(self.planned_until)
    }
}

/// The due jobs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DueJobs {
    /// The jobs, longest due first.
    pub jobs: Vec<DueJob>,
    /// Due jobs whose rows this program cannot read. One of them must not stop the others, so they are listed apart;
    /// they stay due until somebody corrects them.
    pub unreadable: Vec<UnreadableJob>,
    /// Jobs that were due, and are paused now.
    pub paused: Vec<FailingJob>,
    /// Due jobs whose firings replace executions of which another transaction has locked a row. They stay due; try
    /// again in a moment.
    pub deferred: Vec<JobId>,
}

/// A job that was paused because its last executions failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailingJob {
    /// The job.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Number of failures in a row.
    pub failures: u32,
}

/// A due job whose row was written by hand or by another version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnreadableJob {
    /// The job.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// The error.
    pub why: String,
}

impl DueJobs {
    /// Reads rows, in their order.
    pub(super) fn read(rows: Vec<DueRow>) -> Self {
        let mut due = Self::default();
        for row in rows {
            let (id, name) = (JobId::new(row.id), row.name.clone());
            match row.read() {
                Ok(job) => due.jobs.push(job),
                Err(why) => due.unreadable.push(UnreadableJob { id, name, why: why.to_string() }),
            }
        }
        due
    }
}

/// Parses the rate in a row of `jobs`.
pub(crate) fn rate(text: Option<&str>) -> Result<Option<Rate>, StoreError> {
    text.map(|text| parse_column("jobs.misfire_rate", text, |text| text.parse().ok())).transpose()
}

/// Parses the combination of the day fields in a row of `jobs`.
pub(crate) fn day_rule(text: Option<&str>) -> Result<Option<DayRule>, StoreError> {
    text.map(|text| parse_column("jobs.days", text, DayRule::parse)).transpose()
}

/// A due job's row. The params are read as text, because params that this program cannot parse would otherwise fail
/// the whole batch in the driver.
pub(super) struct DueRow {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) schedule_kind: String,
    pub(super) schedule_expression: Option<String>,
    pub(super) timezone: String,
    pub(super) dst: String,
    pub(super) days: Option<String>,
    pub(super) start_at: Option<String>,
    pub(super) end_at: Option<String>,
    pub(super) exclude: Vec<String>,
    pub(super) jitter_ms: Option<i64>,
    pub(super) max_runs: Option<i32>,
    pub(super) runs_used: i32,
    pub(super) next_nominal_at: Option<DateTime<Utc>>,
    pub(super) planned_until: Option<DateTime<Utc>>,
    pub(super) tz_version: Option<String>,
    pub(super) task_type: String,
    pub(super) target: Option<String>,
    pub(super) params: String,
    pub(super) pool: String,
    pub(super) idempotency_template: Option<String>,
    pub(super) templated: bool,
    pub(super) overlap: String,
    pub(super) misfire_policy: String,
    pub(super) misfire_window_ms: i64,
    pub(super) misfire_limit: i32,
    pub(super) pause_after_failures: Option<i32>,
    pub(super) misfire_rate: Option<String>,
    pub(super) next_fire_at: DateTime<Utc>,
    pub(super) now: DateTime<Utc>,
}

impl DueRow {
    /// Parses the job.
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
        let constraints = ScheduleConstraints::from_columns(ConstraintColumns {
            start: self.start_at.as_deref(),
            end: self.end_at.as_deref(),
            exclude: &self.exclude,
            jitter_ms: self.jitter_ms,
            max_runs: self.max_runs,
        })
        .map_err(|error| StoreError::Inconsistent {
            place: "jobs.start_at",
            value: error.to_string(),
        })?;
        let cursor =
            Cursor::from_columns(self.next_fire_at, self.next_nominal_at, &schedule, &constraints);
        let outdated = self.tz_version.as_deref().is_none_or(|by| by < tz_data_version());
        let outdated_since = self.planned_until.filter(|_| outdated && depends_on_zones(&schedule));
        let policy =
            parse_column("jobs.misfire_policy", &self.misfire_policy, MisfirePolicy::parse)?;
        Ok(DueJob {
            id: JobId::new(self.id),
            name: self.name,
            schedule,
            constraints,
            runs_used: self.runs_used.max(0) as u32,
            planned_until: self.planned_until,
            timezone: parse_column("jobs.timezone", &self.timezone, |name| Zone::parse(name).ok())?,
            dst: parse_column("jobs.dst", &self.dst, Dst::parse)?,
            days: day_rule(self.days.as_deref())?,
            outdated_since,
            tz_version: self.tz_version,
            task_type: self.task_type,
            target: self.target,
            params: parse_column("jobs.params", &self.params, |text| {
                serde_json::from_str(text).ok()
            })?,
            pool: parse_column("jobs.pool", &self.pool, |text| text.parse().ok())?,
            idempotency_template: self.idempotency_template,
            templated: self.templated,
            overlap: parse_column("jobs.overlap", &self.overlap, Overlap::parse)?,
            misfire: Misfire {
                policy,
                window: Duration::from_millis(self.misfire_window_ms as u64),
                limit: self.misfire_limit as u32,
                rate: rate(self.misfire_rate.as_deref())?,
            },
            next_fire_at: cursor.nominal,
            pause_after_failures: self.pause_after_failures.map(|failures| failures as u32),
            under_way: UnderWay::default(),
            now: self.now,
        })
    }
}

/// Returns whether new time zone data can move the firings. (Those of a period move only with its terms.)
fn depends_on_zones(schedule: &Schedule) -> bool {
    match schedule {
        Schedule::Cron { .. } => true,
        Schedule::At { at } => at.is_wall(),
        Schedule::Every { .. } | Schedule::None => false,
    }
}
