//! Checks of foreign jobs, and their pings.
//!
//! A ping is one inserted row: it changes no row of a check, so no ping waits for another, nor for a check that is judged.
//! [`record`] writes many pings in one statement. Those that can change a check at once add a wake-up. [`judging`] is one
//! transaction, like that of a job's monitor: a crash before its commit leaves the checks due.
//!
//! Of each check the newest pings are kept ([`KEPT_PINGS`] and as many logs); [`trim`] removes what is older.

pub mod define;
pub mod endpoint;
pub mod judging;
pub mod keys;
pub mod list;
pub mod record;
pub mod trim;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::check::{Cadence, CheckSpec};
use sexton_model::cron::{Dialect, Expression};
use sexton_model::duration::to_millis;
use sexton_model::incident::Severity;
use sexton_model::zone::Zone;
use std::time::Duration;
use uuid::Uuid;

use crate::StoreError;
use crate::error::parse_column;

/// Pings of a check, and as many of its logs, that are kept.
pub const KEPT_PINGS: i64 = sexton_model::check::MAX_PINGS as i64;

/// The columns of a check that define it.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the schema comments every column")]
pub struct CheckRow {
    pub id: Uuid,
    pub name: String,
    pub ping_key: Option<String>,
    pub every_ms: Option<i64>,
    pub schedule: Option<String>,
    pub timezone: String,
    pub grace_ms: i64,
    pub early_by_ms: Option<i64>,
    pub max_runtime_ms: Option<i64>,
    pub alert_after: Option<i32>,
    pub recover_after: Option<i32>,
    pub remind_every_ms: Option<i64>,
    pub severity: Option<String>,
    pub labels: Value,
    pub is_paused: bool,
    pub changed_at: DateTime<Utc>,
    pub deleted_at: Option<DateTime<Utc>>,
}

impl CheckRow {
    /// Returns the definition.
    ///
    /// # Errors
    ///
    /// [`StoreError::Inconsistent`]: another version wrote it.
    pub fn spec(&self) -> Result<CheckSpec, StoreError> {
        let zone = parse_column("checks.timezone", &self.timezone, |name| Zone::parse(name).ok())?;
        let millis = |ms: i64| Duration::from_millis(ms.unsigned_abs());
        let severity = self.severity.as_deref();
        let severity = severity
            .map(|text| parse_column("checks.severity", text, Severity::parse))
            .transpose()?;
        let cadence = match (&self.schedule, self.every_ms) {
            (Some(expression), _) => Cadence::Schedule { expression: expression.clone(), zone },
            (None, every) => Cadence::Every(millis(every.unwrap_or_default().max(1))),
        };
        let labels = self.labels.as_object().into_iter().flatten();
        let text =
            |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        Ok(CheckSpec {
            name: self.name.clone(),
            cadence,
            grace: millis(self.grace_ms),
            early_by: self.early_by_ms.map(millis),
            max_runtime: self.max_runtime_ms.map(millis),
            alert_after: self.alert_after.map(|number| number as u32),
            recover_after: self.recover_after.map(|number| number as u32),
            remind_every: self.remind_every_ms.map(millis),
            severity,
            labels: labels.filter_map(text).collect(),
            key: self.ping_key.clone(),
        })
    }

    /// Returns the parsed schedule; `None`: it has a period.
    ///
    /// # Errors
    ///
    /// [`StoreError::Inconsistent`]: it does not parse.
    pub fn expression(&self) -> Result<Option<Expression>, StoreError> {
        let parse = |text: &str| Expression::parse(text, Dialect::Any, &self.name).ok();
        self.schedule
            .as_deref()
            .map(|text| parse_column("checks.schedule", text, parse))
            .transpose()
    }
}

/// A definition, as the audit records it and `--json` shows it.
pub fn document(spec: &CheckSpec) -> Value {
    let ms = |duration: Option<Duration>| duration.map(to_millis);
    let (every, schedule, timezone) = columns(&spec.cadence);
    json!({
        "name": spec.name, "every_ms": every, "schedule": schedule, "timezone": timezone,
        "grace_ms": to_millis(spec.grace), "early_by_ms": ms(spec.early_by),
        "max_runtime_ms": ms(spec.max_runtime), "alert_after": spec.alert_after,
        "recover_after": spec.recover_after, "remind_every_ms": ms(spec.remind_every),
        "severity": spec.severity.map(Severity::as_str), "labels": spec.labels, "key": spec.key,
    })
}

/// The columns `every_ms`, `schedule` and `timezone`.
fn columns(cadence: &Cadence) -> (Option<i64>, Option<&str>, &'static str) {
    match cadence {
        Cadence::Every(period) => (Some(to_millis(*period)), None, Zone::UTC.name()),
        Cadence::Schedule { expression, zone } => (None, Some(expression), zone.name()),
    }
}
