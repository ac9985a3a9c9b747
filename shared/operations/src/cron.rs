//! Cron expressions, tried without a job: the next firings, and likely mistakes. Neither needs a database.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::cron::{Anomaly, CronError, DayRule, Dialect, Dst, Expression, describe};
use sexton_model::lint::{Severity, lint_horizon, of_expression};
use sexton_model::zone::{Zone, tz_data_version};

use crate::instants::is_listed;
use crate::jobs::clock_changes::ClockChangeEffect;
use crate::jobs::lint::{LintReport, LocatedFinding};

/// Maximum number of firings of one answer.
pub const MAX_FIRINGS: usize = 1_000;
/// Number of firings by default.
pub const DEFAULT_FIRINGS: usize = 5;

/// An expression, and what decides when it fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TriedExpression<'a> {
    /// Five fields, or six with seconds first.
    pub text: &'a str,
    /// The zone of its clocks.
    pub zone: Zone,
    /// The rule for fixed times at clock changes.
    pub dst: Dst,
    /// How two restricting day fields are combined; `None`: as in cron.
    pub days: Option<DayRule>,
    /// The job from whose name `H` is computed.
    pub job: Option<&'a str>,
}

/// When an expression fires next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NextOfExpression {
    /// How its day fields are combined.
    pub day_rule: DayRule,
    /// The firings; empty: nothing matches within 100 years.
    pub firings: Vec<DateTime<Utc>>,
    /// The effects of the clock changes of two years, if the request wants them.
    pub anomalies: Option<Vec<Anomaly>>,
}

/// When an expression fires next, as a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CronFirings {
    /// The expression.
    pub expression: String,
    /// The zone of its clocks.
    pub tz: &'static str,
    /// The rule for fixed times at clock changes.
    pub dst: Dst,
    /// How two restricting day fields are combined, if the request says it.
    pub days: Option<DayRule>,
    /// The job from whose name `H` is computed.
    pub job: Option<String>,
    /// Strictly after this.
    pub from: DateTime<Utc>,
    /// The release of the time zone database.
    pub tz_version: &'static str,
    /// The firings; empty: nothing matches within 100 years.
    pub next: Vec<DateTime<Utc>>,
    /// The effects of the clock changes of two years, if the request wants them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anomalies: Option<Vec<ClockChangeEffect>>,
}

impl CronFirings {
    /// Makes the document.
    pub fn new(tried: TriedExpression<'_>, from: DateTime<Utc>, next: NextOfExpression) -> Self {
        let effects = |anomalies: Vec<Anomaly>| {
            anomalies.iter().map(|one| ClockChangeEffect::new(one, tried.zone)).collect()
        };
        Self {
            expression: tried.text.to_owned(),
            tz: tried.zone.name(),
            dst: tried.dst,
            days: tried.days,
            job: tried.job.map(str::to_owned),
            from,
            tz_version: tz_data_version(),
            next: next.firings,
            anomalies: next.anomalies.map(effects),
        }
    }
}

/// What an expression means, and likely mistakes in it, as a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LintedExpression {
    /// The findings.
    #[serde(flatten)]
    pub report: LintReport,
    /// When the clocks show a firing, in words; `null`: it cannot be read, or would need a long sentence.
    pub words: Option<String>,
}

/// Lists the next `count` firings strictly after `from`, up to the year 9998.
///
/// # Errors
///
/// [`CronError`]: the expression cannot be read.
pub fn next(
    tried: TriedExpression<'_>,
    from: DateTime<Utc>,
    count: usize,
    with_anomalies: bool,
) -> Result<NextOfExpression, CronError> {
    let TriedExpression { text, zone, dst, days, job } = tried;
    let name = job.unwrap_or_default();
    let expression = Expression::parse_with_days(text, Dialect::Any, name, days)?;
    let anomalies =
        with_anomalies.then(|| expression.anomalies(from, lint_horizon(from), zone, dst));
    Ok(NextOfExpression {
        day_rule: expression.day_rule(),
        firings: expression
            .iter_after(from, zone, dst)
            .take_while(|at| is_listed(*at))
            .take(count)
            .collect(),
        anomalies,
    })
}

/// Finds likely mistakes of at least the severity `least`, as of `now`; an expression that cannot be read is one.
pub fn lint(tried: TriedExpression<'_>, now: DateTime<Utc>, least: Severity) -> LintReport {
    let TriedExpression { text, zone, dst, days, job } = tried;
    let found = of_expression(text, job.unwrap_or_default(), zone, dst, days, now);
    let located = found.into_iter().map(|finding| LocatedFinding {
        file: None,
        line: None,
        job: job.map(str::to_owned),
        finding,
    });
    LintReport::new(located.collect(), 1, now, least)
}

/// As [`lint()`], with what the expression means in words.
pub fn lint_in_words(
    tried: TriedExpression<'_>,
    now: DateTime<Utc>,
    least: Severity,
) -> LintedExpression {
    let words = describe(tried.text, tried.job.unwrap_or_default(), tried.days);
    LintedExpression { report: lint(tried, now, least), words }
}
