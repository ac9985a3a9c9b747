//! A job as the database's columns and as JSON.
//!
//! The schedule is stored in two columns, `schedule_kind` and `schedule_expression`, both readable by people. Parsing
//! them checks everything but the cron expression, which [`crate::plan::Timetable`] parses anyway.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    DateRangeError, Exclusions, JobSpec, MAX_PERIOD, MIN_PERIOD, Schedule, ScheduleConstraints,
};
use crate::duration::{self, DurationError, to_millis};
use crate::moment::Moment;

/// The fields of [`JobSpec::to_json`], in an order for people.
pub const COLUMNS: [&str; 50] = [
    "name",
    "description",
    "target",
    "schedule_kind",
    "schedule_expression",
    "timezone",
    "dst",
    "days",
    "start_at",
    "end_at",
    "exclude",
    "jitter_ms",
    "max_runs",
    "task_type",
    "params",
    "pool",
    "overlap",
    "misfire_policy",
    "misfire_window_ms",
    "misfire_limit",
    "misfire_rate",
    "max_retries",
    "max_timeouts",
    "max_crashes",
    "retry_delay_ms",
    "retry_multiplier",
    "retry_max_delay_ms",
    "retry_jitter",
    "permanent_classes",
    "timeout_ms",
    "lease_ms",
    "lock_key",
    "lock_row",
    "lock_at_most_ms",
    "lock_at_least_ms",
    "on_locked",
    "idempotency_template",
    "start_within_ms",
    "expect_within_ms",
    "max_runtime_ms",
    "alert_after",
    "recover_after",
    "remind_every_ms",
    "severity",
    "heartbeat",
    "stale_after_ms",
    "pause_after_failures",
    "verify_task",
    "labels",
    "flow",
];

/// Why two columns are not a schedule. This version did not write such a row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    /// An unknown kind.
    #[error("schedule kind {0:?} is not known to this version")]
    Kind(String),
    /// The kind needs an expression, or must not have one.
    #[error("a schedule of kind {0:?} has {1}")]
    Presence(&'static str, &'static str),
    /// An invalid period.
    #[error("the period {0}")]
    Period(#[from] DurationError),
    /// A period outside the limits, or a phase that is not below it.
    #[error("the period {0:?} is not between 1s and 366d, or its phase not below it")]
    PeriodRange(String),
    /// Neither an RFC 3339 instant nor one without an offset.
    #[error("{0:?} is not an instant")]
    Instant(String),
    /// Not a day or a range of days.
    #[error("{0}")]
    Days(#[from] DateRangeError),
}

/// The columns of [`ScheduleConstraints`] as they are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConstraintColumns<'a> {
    /// `start_at`.
    pub start: Option<&'a str>,
    /// `end_at`.
    pub end: Option<&'a str>,
    /// `exclude`.
    pub exclude: &'a [String],
    /// `jitter_ms`.
    pub jitter_ms: Option<i64>,
    /// `max_runs`.
    pub max_runs: Option<i32>,
}

impl ScheduleConstraints {
    /// Parses the limits in a row.
    ///
    /// # Errors
    ///
    /// [`ColumnError`]: the row was written by another version or by hand.
    pub fn from_columns(columns: ConstraintColumns<'_>) -> Result<Self, ColumnError> {
        Ok(Self {
            start: columns.start.map(moment).transpose()?,
            end: columns.end.map(moment).transpose()?,
            exclude: Exclusions::from_texts(columns.exclude)?,
            jitter: columns.jitter_ms.map(|ms| Duration::from_millis(ms.max(0) as u64)),
            max_runs: columns.max_runs.map(|limit| limit.max(0) as u32),
        })
    }
}

fn moment(text: &str) -> Result<Moment, ColumnError> {
    Moment::parse(text).map_err(|_| ColumnError::Instant(text.to_owned()))
}

impl Schedule {
    /// Returns the columns `schedule_kind` and `schedule_expression`: the cron text, `15m` or with its phase
    /// `15m+5m`, an instant in RFC 3339 (without an offset: a wall time in the job's zone), or nothing. Schedulers
    /// too old for phases and wall times cannot parse those, and skip such a job.
    pub fn to_columns(&self) -> (&'static str, Option<String>) {
        let expression = match self {
            Self::Cron { expression } => Some(expression.clone()),
            Self::Every { period, phase } if phase.is_zero() => Some(duration::format(*period)),
            Self::Every { period, phase } => {
                Some(format!("{}+{}", duration::format(*period), duration::format(*phase)))
            }
            Self::At { at } => Some(at.to_string()),
            Self::None => None,
        };
        (self.kind(), expression)
    }

    /// The inverse of [`Schedule::to_columns`].
    ///
    /// # Errors
    ///
    /// [`ColumnError`]: the row was written by another version or by hand. A cron expression is not checked.
    pub fn from_columns(kind: &str, expression: Option<&str>) -> Result<Self, ColumnError> {
        let needed = |kind| expression.ok_or(ColumnError::Presence(kind, "no expression"));
        match kind {
            "cron" => Ok(Self::Cron { expression: needed("cron")?.to_owned() }),
            "every" => {
                let text = needed("every")?;
                let (period, phase) = match text.split_once('+') {
                    Some((period, phase)) => (duration::parse(period)?, duration::parse(phase)?),
                    None => (duration::parse(text)?, Duration::ZERO),
                };
                if (MIN_PERIOD..=MAX_PERIOD).contains(&period) && phase < period {
                    Ok(Self::Every { period, phase })
                } else {
                    Err(ColumnError::PeriodRange(text.to_owned()))
                }
            }
            "once" => Ok(Self::At { at: moment(needed("once")?)? }),
            "none" if expression.is_some() => Err(ColumnError::Presence("none", "an expression")),
            "none" => Ok(Self::None),
            other => Err(ColumnError::Kind(other.to_owned())),
        }
    }
}

impl JobSpec {
    /// Returns the job as an object whose fields have the names of the database's columns ([`COLUMNS`]); durations in
    /// milliseconds.
    pub fn to_json(&self) -> Value {
        let (kind, expression) = self.schedule.to_columns();
        let millis = |duration: Option<Duration>| duration.map(to_millis);
        json!({
            "name": self.name,
            "description": self.description,
            "target": self.target,
            "schedule_kind": kind,
            "schedule_expression": expression,
            "timezone": self.timezone.name(),
            "dst": self.dst,
            "days": self.days,
            "start_at": self.constraints.start.map(|start| start.to_string()),
            "end_at": self.constraints.end.map(|end| end.to_string()),
            "exclude": self.constraints.exclude.to_texts(),
            "jitter_ms": millis(self.constraints.jitter),
            "max_runs": self.constraints.max_runs,
            "task_type": self.task_type,
            "params": self.params,
            "pool": self.pool,
            "overlap": self.overlap,
            "misfire_policy": self.misfire.policy,
            "misfire_window_ms": to_millis(self.misfire.window),
            "misfire_limit": self.misfire.limit,
            "misfire_rate": self.misfire.rate.map(|rate| rate.to_string()),
            "max_retries": self.retry.max_retries,
            "max_timeouts": self.retry.max_timeouts,
            "max_crashes": self.retry.max_crashes,
            "retry_delay_ms": millis(self.retry.delay),
            "retry_multiplier": self.retry.multiplier,
            "retry_max_delay_ms": millis(self.retry.max_delay),
            "retry_jitter": self.retry.jitter,
            "permanent_classes": self.retry.permanent,
            "timeout_ms": to_millis(self.timeout),
            "lease_ms": millis(self.lease),
            "lock_key": self.lock_key,
            "lock_row": self.lock_row.as_ref().map(|row| &row.name),
            "lock_at_most_ms": millis(self.lock_row.as_ref().map(|row| row.at_most)),
            "lock_at_least_ms": millis(self.lock_row.as_ref().map(|row| row.at_least)),
            "on_locked": self.on_locked,
            "idempotency_template": self.idempotency_template,
            "start_within_ms": millis(self.expectations.start_within),
            "expect_within_ms": millis(self.expectations.expect_within),
            "max_runtime_ms": millis(self.expectations.max_runtime),
            "alert_after": self.expectations.alert_after,
            "recover_after": self.expectations.recover_after,
            "remind_every_ms": millis(self.expectations.remind_every),
            "severity": self.expectations.severity,
            "heartbeat": self.heartbeat,
            "stale_after_ms": millis(self.stale_after),
            "pause_after_failures": self.pause_after_failures,
            "verify_task": self.verify_task,
            "labels": self.labels,
            // Without members there is none.
            "flow": Some(&self.flow).filter(|members| !members.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Schedule {
        Schedule::At { at: Moment::parse(text).unwrap() }
    }

    #[test]
    fn every_schedule_survives_the_database() {
        for (schedule, columns) in [
            (Schedule::Cron { expression: "0 1 1 * *".into() }, ("cron", Some("0 1 1 * *"))),
            (Schedule::every(Duration::from_mins(90)), ("every", Some("1h30m"))),
            (
                Schedule::Every { period: Duration::from_mins(15), phase: Duration::from_mins(5) },
                ("every", Some("15m+5m")),
            ),
            (at("2025-12-15T15:00:00.250Z"), ("once", Some("2025-12-15T15:00:00.250Z"))),
            (at("2025-12-15T15:00:00"), ("once", Some("2025-12-15T15:00:00"))),
            (Schedule::None, ("none", None)),
        ] {
            let (kind, expression) = schedule.to_columns();
            assert_eq!((kind, expression.as_deref()), columns);
            assert_eq!(Schedule::from_columns(kind, expression.as_deref()), Ok(schedule));
        }
    }

    #[test]
    fn columns_that_are_no_schedule_are_refused() {
        for (kind, expression, error) in [
            ("lunar", None, ColumnError::Kind("lunar".into())),
            ("cron", None, ColumnError::Presence("cron", "no expression")),
            ("none", Some("x"), ColumnError::Presence("none", "an expression")),
            ("every", Some("1ms"), ColumnError::PeriodRange("1ms".into())),
            ("every", Some("15m+15m"), ColumnError::PeriodRange("15m+15m".into())),
            ("every", Some("x"), ColumnError::Period(DurationError::Number("x".into()))),
            ("once", Some("tomorrow"), ColumnError::Instant("tomorrow".into())),
        ] {
            assert_eq!(Schedule::from_columns(kind, expression), Err(error));
        }
    }

    #[test]
    fn terms_survive_the_database() {
        let exclude = ["2026-12-24..2026-12-26".to_owned()];
        let columns = ConstraintColumns {
            start: Some("2026-01-01T00:00:00"),
            end: Some("2026-12-31T23:00:00Z"),
            exclude: &exclude,
            jitter_ms: Some(60_000),
            max_runs: Some(5),
        };
        let constraints = ScheduleConstraints::from_columns(columns).unwrap();
        let job = JobSpec { constraints, ..JobSpec::new("a.b", "t", Schedule::None) };
        let json = job.to_json();
        assert_eq!(json["start_at"], "2026-01-01T00:00:00");
        assert_eq!(json["end_at"], "2026-12-31T23:00:00Z");
        assert_eq!(json["exclude"], json!(exclude));
        assert_eq!((&json["jitter_ms"], &json["max_runs"]), (&json!(60_000), &json!(5)));
        let wrong = ConstraintColumns { start: Some("soon"), ..columns };
        assert_eq!(
            ScheduleConstraints::from_columns(wrong),
            Err(ColumnError::Instant("soon".into()))
        );
        let wrong = ConstraintColumns { exclude: &["never".to_owned()], ..columns };
        assert!(matches!(ScheduleConstraints::from_columns(wrong), Err(ColumnError::Days(_))));
    }

    #[test]
    fn the_json_of_a_job_has_exactly_the_columns() {
        let job = JobSpec::new("a.b", "report", Schedule::every(MIN_PERIOD));
        let json = job.to_json();
        let mut names: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let mut columns = COLUMNS.to_vec();
        names.sort_unstable();
        columns.sort_unstable();
        assert_eq!(names, columns);
        assert_eq!(json["schedule_expression"], "1s");
        assert_eq!((&json["timezone"], &json["dst"]), (&"UTC".into(), &"vixie".into()));
        assert_eq!(json["days"], Value::Null);
        assert_eq!(json["timeout_ms"], 3_600_000);
        assert_eq!(json["misfire_policy"], "fire_once");
        assert_eq!(json["lease_ms"], Value::Null);
    }
}
