//! Examines jobs without changing any: likely mistakes, the effects of clock changes, and what templates become.

use std::time::{Duration, Instant};

use axum::Json;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sexton_model::job::MAX_NAME_BYTES;
use sexton_model::lint::{DEFAULT_SAME_MINUTE_JOBS, Severity};
use sexton_model::params;
use sexton_operations::alerts;
use sexton_operations::error::OperationError;
use sexton_operations::jobs::lint::{
    LintReport, Linter, MAX_SAME_MINUTE_JOBS, MIN_SAME_MINUTE_JOBS, load_timed_jobs,
};
use sexton_operations::jobs::preview::{
    DEFAULT_TEMPLATE_FIRINGS, PreviewRequest, PreviewedJobs, preview as preview_jobs,
};
use sexton_service::clock;
use sexton_store::status;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use super::extract::Body;
use super::{MAX_FILE_NAME_BYTES, parameters};
use crate::access::{Allowed, Viewer};
use crate::problem::{Problem, ProblemPlace};

/// The names of the files in findings unless the request says it.
const JOBS_FILE_NAME: &str = "jobs.toml";
const ALERTS_FILE_NAME: &str = "alerts.toml";
/// Maximum number of jobs that a preview names.
const MAX_NAMES: usize = 1_000;
/// Maximum number of firings of each job whose templates a preview fills. Each may have 256 KiB of params.
const MAX_TEMPLATE_FIRINGS: usize = 20;
/// Time after which an examination looks at no other job.
const TIME_LIMIT: Duration = Duration::from_secs(20);

async fn turn(allowed: &Allowed<Viewer>) -> Result<OwnedSemaphorePermit, Problem> {
    let busy = "other requests examine jobs at this moment; send this one again";
    allowed.examination_turn().await.ok_or_else(|| Problem::unavailable(busy))
}

/// Jobs to lint: those of a file, or of the database.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LintJobs {
    /// A jobs file, in TOML. Each of its problems is a finding.
    text: Option<String>,
    /// Its name, for findings; at most 255 bytes.
    #[schema(max_length = 255)]
    file: Option<String>,
    /// Instead of a file: all active jobs of the database, with how long their attempts took.
    database: bool,
    /// Also report jobs of severity `high` without a deadline or a destination.
    policy: bool,
    /// With `policy`: an alerts file, in TOML, whose routes count instead of those that are applied.
    alerts: Option<String>,
    /// Report minutes with at least this number of jobs; 10 if absent.
    #[schema(minimum = 2, maximum = 20000)]
    same_minute: Option<u32>,
    /// The lowest severity to report; `warning` if absent.
    severity: Option<Severity>,
    /// Judge as of this instant, before the year 9001; now if absent.
    #[serde(default, deserialize_with = "parameters::from")]
    from: Option<DateTime<Utc>>,
}

impl LintJobs {
    /// Returns everything that is wrong with the request; what is wrong with the file is a finding.
    fn problems(&self) -> Vec<ProblemPlace> {
        let mut places = Vec::new();
        let mut refuse = |pointer: &str, detail: &str| {
            places.push(ProblemPlace::at(pointer, detail));
        };
        match (&self.text, self.database) {
            (None, false) => {
                refuse("/text", "is missing: send a jobs file, or \"database\": true");
            }
            (Some(_), true) => {
                refuse("/database", "goes without a text: lint one of them at a time");
            }
            _ => {}
        }
        if self.file.as_ref().is_some_and(|name| name.len() > MAX_FILE_NAME_BYTES) {
            refuse("/file", &format!("has more than {MAX_FILE_NAME_BYTES} bytes"));
        }
        if self.alerts.is_some() && !self.policy {
            refuse("/alerts", "needs \"policy\": true, which judges by it");
        }
        if let Some(jobs) = self.same_minute
            && !(MIN_SAME_MINUTE_JOBS..=MAX_SAME_MINUTE_JOBS).contains(&jobs)
        {
            let range = format!("{MIN_SAME_MINUTE_JOBS} to {MAX_SAME_MINUTE_JOBS}");
            refuse("/same_minute", &format!("must be {range}, not {jobs}"));
        }
        places
    }
}

/// What was found in jobs.
#[derive(Debug, Serialize, ToSchema)]
pub struct LintedJobs {
    /// The findings.
    #[serde(flatten)]
    report: LintReport,
    /// Whether all jobs were examined; `false`: the database has more than 20,000 jobs, of which the first were examined, or 20 s were not enough.
    complete: bool,
}

/// Finds likely mistakes in the jobs of a file, as `sexton jobs lint` does, or in those of the database. Writes nothing.
///
/// All problems of the file are findings with their lines; while it has any, its jobs are not examined further.
#[utoipa::path(post, path = "/jobs:lint", tag = "jobs", operation_id = "lint_jobs", extensions(("x-role" = json!("viewer"))),
    request_body = LintJobs,
    responses((status = 200, description = "The findings.", body = LintedJobs)))]
pub async fn lint(
    allowed: Allowed<Viewer>,
    Body(request): Body<LintJobs>,
) -> Result<Json<LintedJobs>, Problem> {
    let places = request.problems();
    if !places.is_empty() {
        return Err(Problem::several(places));
    }
    let turn = turn(&allowed).await?;
    let store = allowed.reads();
    let now = match request.from {
        Some(from) => from,
        None if request.database => status::clock(store).await?,
        None => clock::now(),
    };
    let routes = match (request.policy, &request.alerts) {
        (true, None) => Some(alerts::read(store).await?.routes),
        _ => None,
    };
    let timed = if request.database { Some(load_timed_jobs(store).await?) } else { None };
    let linting = spawn_blocking(move || {
        // Until the end, even if the client leaves.
        let _turn = turn;
        let mut linter = Linter::new(now);
        linter.stop_at(Instant::now() + TIME_LIMIT);
        if let Some(routes) = routes {
            linter.judge_policies(routes);
        }
        if let Some(text) = &request.alerts {
            linter.judge_policies_by_file(ALERTS_FILE_NAME, text);
        }
        if let Some(text) = &request.text {
            linter.add_jobs_file(request.file.as_deref().unwrap_or(JOBS_FILE_NAME), text);
        }
        let complete = timed.as_ref().is_none_or(|timed| timed.complete);
        if let Some(timed) = timed {
            linter.add_timed_jobs(timed);
        }
        let min_jobs = request.same_minute.map_or(DEFAULT_SAME_MINUTE_JOBS, |count| count as usize);
        linter.examine_together(min_jobs);
        let complete = complete && linter.is_complete();
        let report = linter.finish(request.severity.unwrap_or(Severity::Warning));
        LintedJobs { report, complete }
    });
    let linted = linting.await.map_err(|error| OperationError::Failed(error.to_string()))?;
    Ok(Json(linted))
}

/// What to preview.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PreviewJobs {
    /// Jobs, at most 1,000; all active ones if empty.
    #[schema(max_items = 1000)]
    names: Vec<String>,
    /// When the two years of clock changes begin, before the year 9001; now if absent.
    #[serde(default, deserialize_with = "parameters::from")]
    from: Option<DateTime<Utc>>,
    /// Number of firings of each job whose templates are filled; 3 if absent.
    #[schema(minimum = 1, maximum = 20)]
    count: Option<usize>,
    /// Params of a caller, for the templates.
    #[schema(value_type = Option<Object>)]
    params: Option<Map<String, Value>>,
}

/// Previews how clock changes affect the firings of jobs, and what their templates become, as `sexton jobs preview` does. Writes nothing.
///
/// It has the effects of two years, at most 1,000, and the templates of at most 20 jobs: to see others, name them. What looks like a secret is
/// masked, also where a template copies it. After 20 s it examines no other job.
#[utoipa::path(post, path = "/jobs:preview", tag = "jobs", operation_id = "preview_jobs", extensions(("x-role" = json!("viewer"))),
    request_body = PreviewJobs,
    responses((status = 200, description = "What will happen to the jobs.", body = PreviewedJobs)))]
pub async fn preview(
    allowed: Allowed<Viewer>,
    Body(request): Body<PreviewJobs>,
) -> Result<Json<PreviewedJobs>, Problem> {
    let PreviewJobs { names, from, count, params } = request;
    let mut places = Vec::new();
    if names.len() > MAX_NAMES {
        places.push(ProblemPlace::at("/names", format!("has more than {MAX_NAMES} names")));
    }
    for (index, name) in names.iter().take(MAX_NAMES).enumerate() {
        if name.len() > MAX_NAME_BYTES || name.contains('\0') {
            let detail = format!("has more than {MAX_NAME_BYTES} bytes, or the character U+0000");
            places.push(ProblemPlace::at(format!("/names/{index}"), detail));
        }
    }
    let count = count.unwrap_or(DEFAULT_TEMPLATE_FIRINGS);
    if !(1..=MAX_TEMPLATE_FIRINGS).contains(&count) {
        let detail = format!("must be 1 to {MAX_TEMPLATE_FIRINGS}, not {count}");
        places.push(ProblemPlace::at("/count", detail));
    }
    let given = params.unwrap_or_default();
    if let Err(error) = params::check(&given) {
        places.push(ProblemPlace::at("/params", format!("they {error}")));
    }
    if !places.is_empty() {
        return Err(Problem::several(places));
    }
    let turn = turn(&allowed).await?;
    let store = allowed.reads().clone();
    let now = status::clock(&store).await?;
    let time_limit = Some(TIME_LIMIT);
    let request = PreviewRequest { names, from, count, given, time_limit };
    let work = async move {
        // Until the end, even if the client leaves.
        let _turn = turn;
        preview_jobs(&store, &request, now).await.map(|found| PreviewedJobs::masked(&found))
    };
    let previewed = allowed.spawn_background(work).await;
    let previewed = previewed.map_err(|error| OperationError::Failed(error.to_string()))??;
    Ok(Json(previewed))
}
