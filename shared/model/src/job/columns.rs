//! A job as the database's columns and as JSON.
//!
//! The schedule is kept in two columns, `schedule_kind` and `schedule_expression`, both readable by
//! people. Reading them back checks everything but the cron expression, which
//! [`crate::plan::Timetable`] parses anyway.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::{JobSpec, MAX_PERIOD, MIN_PERIOD, Schedule};
use crate::duration::{self, DurationError, to_millis};

/// The fields of [`JobSpec::to_json`], in the order in which people read a job.
pub const COLUMNS: [&str; 30] = [
    "name",
    "description",
    "target",
    "schedule_kind",
    "schedule_expression",
    "timezone",
    "dst",
    "task_type",
    "params",
    "pool",
    "overlap",
    "misfire_policy",
    "misfire_window_ms",
    "misfire_limit",
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
    "idempotency_template",
    "expect_within_ms",
    "stale_after_ms",
    "pause_after_failures",
    "labels",
];

/// Why two columns are not a schedule. Whoever reads it has a row that this version did not write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    /// A kind that this version does not know.
    #[error("schedule kind {0:?} is not known to this version")]
    Kind(String),
    /// The kind needs an expression, or must not have one.
    #[error("a schedule of kind {0:?} has {1}")]
    Presence(&'static str, &'static str),
    /// A period that is no duration.
    #[error("the period {0}")]
    Period(#[from] DurationError),
    /// A period outside the limits.
    #[error("the period {0:?} is not between 1s and 366d")]
    PeriodRange(String),
    /// Not an RFC 3339 instant.
    #[error("{0:?} is not an RFC 3339 instant")]
    Instant(String),
}

impl Schedule {
    /// The columns `schedule_kind` and `schedule_expression`: the cron text, `15m`, an RFC 3339
    /// instant, or nothing.
    pub fn to_columns(&self) -> (&'static str, Option<String>) {
        let expression = match self {
            Self::Cron { expression } => Some(expression.clone()),
            Self::Every { period } => Some(duration::format(*period)),
            Self::At { at } => Some(at.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
            Self::None => None,
        };
        (self.kind(), expression)
    }

    /// The inverse of [`Schedule::to_columns`].
    ///
    /// # Errors
    ///
    /// [`ColumnError`]: the row was written by another version or by hand. A cron expression is
    /// taken as it is.
    pub fn from_columns(kind: &str, expression: Option<&str>) -> Result<Self, ColumnError> {
        let needed = |kind| expression.ok_or(ColumnError::Presence(kind, "no expression"));
        match kind {
            "cron" => Ok(Self::Cron { expression: needed("cron")?.to_owned() }),
            "every" => {
                let text = needed("every")?;
                let period = duration::parse(text)?;
                if (MIN_PERIOD..=MAX_PERIOD).contains(&period) {
                    Ok(Self::Every { period })
                } else {
                    Err(ColumnError::PeriodRange(text.to_owned()))
                }
            }
            "once" => {
                let text = needed("once")?;
                DateTime::parse_from_rfc3339(text)
                    .map(|at| Self::At { at: at.with_timezone(&Utc) })
                    .map_err(|_| ColumnError::Instant(text.to_owned()))
            }
            "none" if expression.is_some() => Err(ColumnError::Presence("none", "an expression")),
            "none" => Ok(Self::None),
            other => Err(ColumnError::Kind(other.to_owned())),
        }
    }
}

impl JobSpec {
    /// The job as an object whose fields bear the names of the database's columns ([`COLUMNS`]);
    /// durations in milliseconds.
    pub fn to_json(&self) -> Value {
        let (kind, expression) = self.schedule.to_columns();
        let millis = |duration: Option<std::time::Duration>| duration.map(to_millis);
        json!({
            "name": self.name,
            "description": self.description,
            "target": self.target,
            "schedule_kind": kind,
            "schedule_expression": expression,
            "timezone": self.timezone.name(),
            "dst": self.dst,
            "task_type": self.task_type,
            "params": self.params,
            "pool": self.pool,
            "overlap": self.overlap,
            "misfire_policy": self.misfire.policy,
            "misfire_window_ms": to_millis(self.misfire.window),
            "misfire_limit": self.misfire.limit,
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
            "idempotency_template": self.idempotency_template,
            "expect_within_ms": millis(self.expect_within),
            "stale_after_ms": millis(self.stale_after),
            "pause_after_failures": self.pause_after_failures,
            "labels": self.labels,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_schedule_survives_the_database() {
        for (schedule, columns) in [
            (Schedule::Cron { expression: "0 1 1 * *".into() }, ("cron", Some("0 1 1 * *"))),
            (Schedule::Every { period: Duration::from_mins(90) }, ("every", Some("1h30m"))),
            (
                Schedule::At { at: "2025-12-15T15:00:00.250Z".parse().unwrap() },
                ("once", Some("2025-12-15T15:00:00.250Z")),
            ),
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
            ("every", Some("x"), ColumnError::Period(DurationError::Number("x".into()))),
            ("once", Some("tomorrow"), ColumnError::Instant("tomorrow".into())),
        ] {
            assert_eq!(Schedule::from_columns(kind, expression), Err(error));
        }
    }

    #[test]
    fn the_json_of_a_job_has_exactly_the_columns() {
        let job = JobSpec::new("a.b", "report", Schedule::Every { period: MIN_PERIOD });
        let json = job.to_json();
        let mut names: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let mut columns = COLUMNS.to_vec();
        names.sort_unstable();
        columns.sort_unstable();
        assert_eq!(names, columns);
        assert_eq!(json["schedule_expression"], "1s");
        assert_eq!((&json["timezone"], &json["dst"]), (&"UTC".into(), &"vixie".into()));
        assert_eq!(json["timeout_ms"], 3_600_000);
        assert_eq!(json["misfire_policy"], "fire_once");
        assert_eq!(json["lease_ms"], Value::Null);
    }
}
