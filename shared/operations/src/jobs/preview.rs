//! What will happen to jobs: the effects of clock changes on their firings, and what their templates become.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};
use sexton_model::cron::Anomaly;
use sexton_model::lint::lint_horizon;
use sexton_model::zone::Zone;
use sexton_store::Store;
use tokio::task::spawn_blocking;

use super::clock_changes::{self, ClockChangeEffect, PredictedEffects};
use super::copied_secrets::CopyMasker;
use super::filled::{FilledFiring, has_templates, preview as preview_templates};
use super::scheduled::{ScheduledJobs, load_jobs};
use crate::error::OperationError;

/// Maximum number of effects of clock changes that one preview has; it counts the others.
pub const MAX_EFFECTS: usize = 1_000;
/// Maximum number of jobs whose templates one preview fills; it counts the others.
pub const MAX_TEMPLATED_JOBS: usize = 20;
/// Number of firings of each job whose templates are filled by default.
pub const DEFAULT_TEMPLATE_FIRINGS: usize = 3;
/// When the filled params have so many bytes, the templates of no further job are filled.
const MAX_TEMPLATE_BYTES: usize = 8 * 1024 * 1024;

/// What to preview.
#[derive(Clone, PartialEq, Debug)]
pub struct PreviewRequest {
    /// Jobs; empty: all active ones.
    pub names: Vec<String>,
    /// When the two years of clock changes begin; `None`: now.
    pub from: Option<DateTime<Utc>>,
    /// Number of planned firings of each job whose templates are filled.
    pub count: usize,
    /// A caller's params, for the templates.
    pub given: Map<String, Value>,
    /// Time for the effects of clock changes, after which no other job is examined; `None`: as much as they need.
    pub time_limit: Option<Duration>,
}

/// The effect of a clock change on a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobAnomaly {
    /// The job's name.
    pub job: String,
    /// The zone of its clocks.
    pub zone: Zone,
    /// The effect.
    pub anomaly: Anomaly,
}

/// What a job's templates become.
#[derive(Debug)]
pub struct JobTemplates {
    /// The job's name.
    pub job: String,
    /// Its params, whose placeholders are not filled.
    pub params: Value,
    /// Its executions.
    pub firings: Vec<FilledFiring>,
}

/// What will happen to jobs.
#[derive(Debug)]
pub struct JobsPreview {
    /// When the two years of clock changes begin.
    pub from: DateTime<Utc>,
    /// When they end.
    pub until: DateTime<Utc>,
    /// Number of jobs that were examined.
    pub job_count: usize,
    /// Whether these are all.
    pub complete: bool,
    /// The effects of clock changes, in the order of the changes, at most [`MAX_EFFECTS`].
    pub anomalies: Vec<JobAnomaly>,
    /// Number of further ones.
    pub more_anomalies: usize,
    /// What templates become, of at most [`MAX_TEMPLATED_JOBS`] jobs, by name.
    pub templates: Vec<JobTemplates>,
    /// Number of further jobs with templates.
    pub more_templates: usize,
}

/// What will happen to jobs, as a document.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PreviewedJobs {
    /// When the two years of clock changes begin.
    pub from: DateTime<Utc>,
    /// When they end.
    pub until: DateTime<Utc>,
    /// Whether all jobs were examined, all effects are listed, and the templates of all these jobs are filled; otherwise name the jobs.
    pub complete: bool,
    /// The effects of clock changes, in the order of the changes.
    pub anomalies: Vec<JobClockChange>,
    /// What templates become: those of the next planned firings; for a job without a schedule, of an example.
    pub templates: Vec<FilledTemplate>,
}

/// The effect of a clock change on a job, as a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobClockChange {
    /// The job's name.
    pub job_name: String,
    /// The effect.
    #[serde(flatten)]
    pub effect: ClockChangeEffect,
}

/// What the templates of a job become in an execution, as a document.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FilledTemplate {
    /// The job's name.
    pub job_name: String,
    /// The execution's nominal time.
    pub scheduled_for: DateTime<Utc>,
    /// The execution's key.
    pub execution_key: String,
    /// The execution's idempotency key.
    pub idempotency_key: String,
    /// The execution's params.
    pub params: Value,
    /// Why it cannot be: a param is missing, for example; `null`: it can.
    pub problem: Option<String>,
}

impl PreviewedJobs {
    /// Makes the document, with the secrets masked in what templates become, also where a template copies one. A problem has the names of
    /// params only.
    pub fn masked(preview: &JobsPreview) -> Self {
        let mut document = Self::from(preview);
        let mut masker = CopyMasker::default();
        // In the same order: each job's firings follow one another.
        let mut templates = document.templates.iter_mut();
        for JobTemplates { params, firings, .. } in &preview.templates {
            for template in templates.by_ref().take(firings.len()) {
                masker.mask(&mut template.params, &mut template.idempotency_key, params);
            }
        }
        document
    }
}

impl From<&JobsPreview> for PreviewedJobs {
    fn from(preview: &JobsPreview) -> Self {
        let anomalies = preview.anomalies.iter().map(|one| JobClockChange {
            job_name: one.job.clone(),
            effect: ClockChangeEffect::new(&one.anomaly, one.zone),
        });
        let templates =
            preview.templates.iter().flat_map(|JobTemplates { job, firings, .. }| {
                firings.iter().map(|firing| FilledTemplate {
                    job_name: job.clone(),
                    scheduled_for: firing.scheduled_for,
                    execution_key: firing.execution_key.clone(),
                    idempotency_key: firing.filled.idempotency_key.clone(),
                    params: firing.filled.params.clone(),
                    problem: firing.filled.problem.clone(),
                })
            });
        Self {
            from: preview.from,
            until: preview.until,
            complete: preview.complete
                && preview.more_anomalies == 0
                && preview.more_templates == 0,
            anomalies: anomalies.collect(),
            templates: templates.collect(),
        }
    }
}

/// Predicts the effects of the clock changes of two years on jobs, and fills the templates of their next planned firings, those of a paused
/// job after `now`. The effects are computed on a blocking thread.
///
/// # Errors
///
/// [`crate::error::NotFound::Job`] for a name that no job has, and those of the database.
pub async fn preview(
    store: &Store,
    request: &PreviewRequest,
    now: DateTime<Utc>,
) -> Result<JobsPreview, OperationError> {
    let ScheduledJobs { jobs, complete } = load_jobs(store, &request.names).await?;
    let from = request.from.unwrap_or(now);
    let until = lint_horizon(from);
    let (templates, more_templates) = {
        let templated: Vec<_> = jobs.iter().filter(|job| has_templates(&job.spec)).collect();
        let (mut filled, mut bytes) = (Vec::new(), 0);
        for &job in templated.iter().take(MAX_TEMPLATED_JOBS) {
            if bytes > MAX_TEMPLATE_BYTES {
                break;
            }
            let firings = preview_templates(store, job, request.count, &request.given, now).await?;
            bytes += firings.iter().map(bytes_of).sum::<usize>();
            let (name, params) = (job.row.name.clone(), job.row.params.clone());
            filled.push(JobTemplates { job: name, params, firings });
        }
        let more = templated.len() - filled.len();
        (filled, more)
    };
    let time_limit = request.time_limit;
    let predicting = spawn_blocking(move || {
        let deadline = time_limit.map(|limit| Instant::now() + limit);
        let PredictedEffects { effects: found, job_count } =
            clock_changes::list_until(deadline, &jobs, from, until);
        let complete = complete && job_count == jobs.len();
        let more = found.len().saturating_sub(MAX_EFFECTS);
        let listed = found.into_iter().take(MAX_EFFECTS).map(|(job, anomaly)| JobAnomaly {
            job: job.row.name.clone(),
            zone: job.spec.timezone,
            anomaly,
        });
        let listed: Vec<JobAnomaly> = listed.collect();
        (listed, more, job_count, complete)
    });
    let predicted = predicting.await;
    let (anomalies, more_anomalies, job_count, complete) = predicted.map_err(|error| {
        OperationError::Failed(format!("clock changes cannot be predicted: {error}"))
    })?;
    Ok(JobsPreview {
        from,
        until,
        job_count,
        complete,
        anomalies,
        more_anomalies,
        templates,
        more_templates,
    })
}

fn bytes_of(firing: &FilledFiring) -> usize {
    firing.filled.params.to_string().len() + firing.filled.idempotency_key.len()
}
