//! Cron expressions, tried without a job.

use axum::Json;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use sexton_model::cron::{DayRule, Dst};
use sexton_model::job::MAX_NAME_BYTES;
use sexton_model::lint::Severity;
use sexton_model::zone::Zone;
use sexton_operations::cron::{
    self, CronFirings, DEFAULT_FIRINGS, LintedExpression, MAX_FIRINGS, TriedExpression,
};
use sexton_service::clock;
use utoipa::ToSchema;

use super::extract::Body;
use super::parameters;
use crate::access::{Allowed, Viewer};
use crate::problem::{Problem, ProblemPlace};

/// An expression whose next firings to list.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCronFirings {
    /// Five fields, or six with seconds first: `0 8 * * MON-FRI`. At most 1,024 bytes.
    #[schema(max_length = 1024)]
    expression: String,
    /// The IANA time zone of its clocks; UTC if absent.
    zone: Option<String>,
    /// The rule for fixed times at clock changes; `vixie` if absent.
    dst: Option<Dst>,
    /// Whether both day fields must select a day, or either; as in cron if absent.
    days: Option<DayRule>,
    /// The job from whose name `H` is computed, at most 200 bytes.
    job: Option<String>,
    /// Only firings after this instant, before the year 9001; now if absent.
    #[serde(default, deserialize_with = "parameters::from")]
    from: Option<DateTime<Utc>>,
    /// Number of firings; 5 if absent.
    #[schema(minimum = 1, maximum = 1000)]
    count: Option<usize>,
    /// Also the effects of the clock changes of two years.
    #[serde(default)]
    anomalies: bool,
}

/// An expression to lint.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LintCron {
    /// Five fields, or six with seconds first: `0 8 * * MON-FRI`. One of more than 1,024 bytes, or that cannot
    /// be read, is a finding.
    expression: String,
    /// The IANA time zone of its clocks; UTC if absent.
    zone: Option<String>,
    /// The rule for fixed times at clock changes; `vixie` if absent.
    dst: Option<Dst>,
    /// Whether both day fields must select a day, or either; as in cron if absent.
    days: Option<DayRule>,
    /// The job from whose name `H` is computed, at most 200 bytes.
    job: Option<String>,
    /// Judge as of this instant, before the year 9001; now if absent.
    #[serde(default, deserialize_with = "parameters::from")]
    from: Option<DateTime<Utc>>,
    /// The lowest severity to report; `warning` if absent.
    severity: Option<Severity>,
}

/// Lists the next firings of a cron expression, as `sexton cron next` does.
#[utoipa::path(post, path = "/cron:next", tag = "jobs", operation_id = "list_cron_firings", extensions(("x-role" = json!("viewer"))),
    request_body = ListCronFirings,
    responses((status = 200, description = "The firings, the soonest first; none: it never fires.", body = CronFirings)))]
pub async fn next(
    _allowed: Allowed<Viewer>,
    Body(request): Body<ListCronFirings>,
) -> Result<Json<CronFirings>, Problem> {
    let mut places = Vec::new();
    let ListCronFirings { expression, dst, days, from, anomalies, .. } = &request;
    let count = request.count.unwrap_or(DEFAULT_FIRINGS);
    if !(1..=MAX_FIRINGS).contains(&count) {
        let detail = format!("must be 1 to {MAX_FIRINGS}, not {count}");
        places.push(ProblemPlace::at("/count", detail));
    }
    let tried = TriedExpression {
        text: expression,
        zone: read_zone(request.zone.as_deref(), &mut places),
        dst: dst.unwrap_or_default(),
        days: *days,
        job: read_job(request.job.as_deref(), &mut places),
    };
    let from = from.unwrap_or_else(clock::now);
    // Tried although something else is wrong, so that all problems are found at once.
    match cron::next(tried, from, count.min(MAX_FIRINGS), *anomalies) {
        Ok(found) if places.is_empty() => Ok(Json(CronFirings::new(tried, from, found))),
        Ok(_) => Err(Problem::several(places)),
        Err(error) => {
            places.push(ProblemPlace::at("/expression", error.to_string()));
            Err(Problem::several(places))
        }
    }
}

/// Finds likely mistakes in a cron expression, as `sexton cron lint` does, and says in words when it fires.
#[utoipa::path(post, path = "/cron:lint", tag = "jobs", operation_id = "lint_cron", extensions(("x-role" = json!("viewer"))),
    request_body = LintCron,
    responses((status = 200, description = "The findings; empty: nothing suspicious.", body = LintedExpression)))]
pub async fn lint(
    _allowed: Allowed<Viewer>,
    Body(request): Body<LintCron>,
) -> Result<Json<LintedExpression>, Problem> {
    let mut places = Vec::new();
    let LintCron { expression, dst, days, from, severity, .. } = &request;
    let tried = TriedExpression {
        text: expression,
        zone: read_zone(request.zone.as_deref(), &mut places),
        dst: dst.unwrap_or_default(),
        days: *days,
        job: read_job(request.job.as_deref(), &mut places),
    };
    if !places.is_empty() {
        return Err(Problem::several(places));
    }
    let (now, least) = (from.unwrap_or_else(clock::now), severity.unwrap_or(Severity::Warning));
    Ok(Json(cron::lint_in_words(tried, now, least)))
}

fn read_zone(text: Option<&str>, places: &mut Vec<ProblemPlace>) -> Zone {
    let Some(text) = text else { return Zone::UTC };
    Zone::parse(text).unwrap_or_else(|error| {
        places.push(ProblemPlace::at("/zone", error.to_string()));
        Zone::UTC
    })
}

fn read_job<'a>(name: Option<&'a str>, places: &mut Vec<ProblemPlace>) -> Option<&'a str> {
    let name = name?;
    if name.len() > MAX_NAME_BYTES {
        let detail = format!("has {} bytes; {MAX_NAME_BYTES} at most", name.len());
        places.push(ProblemPlace::at("/job", detail));
        return None;
    }
    Some(name)
}
