//! Lint: valid schedules that their writers probably did not intend.
//!
//! A [`Finding`] never refuses anything. There are rules about an expression ([`of_expression`]), about a job
//! as a whole ([`of_job`]), and about many at once ([`same_minute`]), and about the policies of important
//! ones ([`of_policy`]). All are functions of values and
//! `now`, with bounded work for each job.

mod day_fields;
mod expression;
mod job;
mod many;
mod policy;
mod steps;
#[cfg(test)]
mod tests;

use chrono::{DateTime, Months, Utc};
use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;

pub use day_fields::DayMeanings;
pub use job::{MIN_RUNS, RunTimes, of_expression, of_job};
pub use many::{DEFAULT_SAME_MINUTE_JOBS, same_minute};
pub use policy::of_policy;

/// How far ahead clock changes are searched.
const LINT_HORIZON: Months = Months::new(24);

/// Returns the end of the search from `now` on: two years later.
pub fn lint_horizon(now: DateTime<Utc>) -> DateTime<Utc> {
    now.checked_add_months(LINT_HORIZON).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// The severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = FindingSeverity))]
pub enum Severity {
    /// Worth knowing; often intended.
    Note,
    /// Probably not intended.
    Warning,
    /// Cannot work.
    Error,
}

text_enum!(Severity { Note => "note", Warning => "warning", Error => "error" });

/// The rule behind a finding. The words are part of the interface and do not change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = LintCode))]
pub enum Code {
    /// The schedule cannot be parsed.
    Unreadable,
    /// Nothing matches within 100 years.
    NeverFires,
    /// Both day fields restrict the days, and the job does not say `days`.
    DayFields,
    /// Every minute of some hours, where perhaps one was intended.
    EveryMinute,
    /// A step past the end of its range, which selects only the start.
    StepTooLarge,
    /// A step that does not divide its field, so that the last interval is shorter.
    UnevenStep,
    /// A day that some of the selected months do not have.
    MissingDay,
    /// A clock change moves, skips or doubles a firing.
    ClockChange,
    /// It is due again before it usually ends.
    TooOften,
    /// Many jobs are due in one minute.
    SameMinute,
    /// A job of high severity that nobody misses if it does not run.
    NoDeadline,
    /// A job of high severity whose incidents reach no channel.
    NoDestination,
}

text_enum!(Code {
    Unreadable => "unreadable",
    NeverFires => "never_fires",
    DayFields => "day_fields",
    EveryMinute => "every_minute",
    StepTooLarge => "step_too_large",
    UnevenStep => "uneven_step",
    MissingDay => "missing_day",
    ClockChange => "clock_change",
    TooOften => "too_often",
    SameMinute => "same_minute",
    NoDeadline => "no_deadline",
    NoDestination => "no_destination",
});

impl Code {
    /// All codes, in the order in which the page lists them.
    pub const ALL: [Self; 12] = [
        Self::Unreadable,
        Self::NeverFires,
        Self::DayFields,
        Self::EveryMinute,
        Self::StepTooLarge,
        Self::UnevenStep,
        Self::MissingDay,
        Self::ClockChange,
        Self::TooOften,
        Self::SameMinute,
        Self::NoDeadline,
        Self::NoDestination,
    ];
}

/// A finding of one rule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = LintFinding))]
pub struct Finding {
    /// The rule.
    pub code: Code,
    /// The severity.
    pub severity: Severity,
    /// The problem, and why it may not be intended. Bounded, without control characters.
    pub message: String,
    /// The suggested replacement.
    pub instead: String,
}

impl Finding {
    pub(crate) fn new(
        code: Code,
        severity: Severity,
        message: impl Into<String>,
        instead: impl Into<String>,
    ) -> Self {
        Self { code, severity, message: message.into(), instead: instead.into() }
    }
}
