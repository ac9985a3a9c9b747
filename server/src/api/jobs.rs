//! Jobs.

use axum::Json;
use axum::http::header::ETAG;
use axum::http::{HeaderName, HeaderValue};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sexton_model::state::State;
use sexton_operations::filter::read_labels;
use sexton_operations::jobs::details::{self, JobDetails, ListedJob};
use sexton_operations::jobs::pause;
use sexton_operations::jobs::trigger::{self, TriggerRequest};
use sexton_operations::paging::Page;
use sexton_operations::secrets::mask_job;
use sexton_store::jobs::JobFilter;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::extract::{Body, Path, Query};
use super::paging::Paged;
use super::preconditions::etag;
use super::{PageSize, ReasonBody, RequiredReason};
use crate::access::{Allowed, Operator, Viewer};
use crate::problem::Problem;

/// Which jobs to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListJobs {
    /// Only jobs whose name contains this text.
    contains: Option<String>,
    /// Only active or only paused jobs.
    #[param(inline)]
    status: Option<JobStatus>,
    /// Deleted jobs instead.
    deleted: bool,
    /// Only jobs with this label, such as `team=billing`. May be repeated.
    #[param(explode)]
    label: Vec<String>,
    /// Jobs of a page.
    #[param(inline)]
    limit: PageSize,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Whether a job fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// It fires by its schedule.
    Active,
    /// It fires only if it is triggered.
    Paused,
}

impl JobStatus {
    /// Returns its word in the database, and in addresses.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
        }
    }
}

/// Lists jobs by name, each with its last execution.
#[utoipa::path(get, path = "/jobs", tag = "jobs", operation_id = "list_jobs", extensions(("x-role" = json!("viewer"))), params(ListJobs),
    responses((status = 200, description = "A page of jobs.", body = Page<ListedJob>)))]
pub async fn list(
    allowed: Allowed<Viewer>,
    Query(query): Query<ListJobs>,
) -> Result<Paged<ListedJob>, Problem> {
    let ListJobs { contains, status, deleted, label, limit, cursor } = query;
    let status = status.map(|status| status.as_str().to_owned());
    let labels = read_labels(&label)?;
    let filter = JobFilter { containing: contains, status, labels, ..JobFilter::default() };
    let reads = allowed.reads();
    let mut page = details::list(reads, filter, deleted, cursor.as_deref(), limit.get()).await?;
    page.items.iter_mut().for_each(|listed| mask_job(&mut listed.job));
    Ok(Paged(page))
}

/// Shows a job, with its next firings and its recent past.
#[utoipa::path(get, path = "/jobs/{name}", tag = "jobs", operation_id = "show_job", extensions(("x-role" = json!("viewer"))),
    params(("name" = String, Path, description = "The job's name; also that of a deleted one.")),
    responses((status = 200, description = "The job.", body = JobDetails,
               headers(("ETag" = String, description = "Its revision, for `If-Match`.")))))]
pub async fn show(
    allowed: Allowed<Viewer>,
    Path(name): Path<String>,
) -> Result<([(HeaderName, HeaderValue); 1], Json<JobDetails>), Problem> {
    let mut details = details::show(allowed.reads(), &name).await?;
    mask_job(&mut details.job);
    Ok(([(ETAG, etag(details.job.revision))], Json(details)))
}

/// A job that was paused.
#[derive(Debug, Serialize, ToSchema)]
pub struct PausedJob {
    /// Its name.
    name: String,
    /// `paused`.
    status: &'static str,
}

/// Stops a job's firings; executions under way continue.
#[utoipa::path(post, path = "/jobs/{name}/pause", tag = "jobs", operation_id = "pause_job", extensions(("x-role" = json!("operator"))),
    params(("name" = String, Path, description = "The job's name.")), request_body = RequiredReason,
    responses((status = 200, description = "It is paused.", body = PausedJob)))]
pub async fn pause(
    allowed: Allowed<Operator>,
    Path(name): Path<String>,
    Body(RequiredReason { reason }): Body<RequiredReason>,
) -> Result<Json<PausedJob>, Problem> {
    pause::pause(&allowed.writes(), &name, allowed.actor(), &reason).await?;
    Ok(Json(PausedJob { name, status: JobStatus::Paused.as_str() }))
}

/// A job that fires again.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResumedJob {
    /// Its name.
    name: String,
    /// `active`.
    status: &'static str,
    /// When it fires next; absent: never again by itself.
    next_fire_at: Option<DateTime<Utc>>,
    /// Firings that the pause has swallowed; they do not run.
    missed: u32,
}

/// Lets a paused job fire again.
#[utoipa::path(post, path = "/jobs/{name}/resume", tag = "jobs", operation_id = "resume_job", extensions(("x-role" = json!("operator"))),
    params(("name" = String, Path, description = "The job's name.")), request_body = ReasonBody,
    responses((status = 200, description = "It fires again.", body = ResumedJob)))]
pub async fn resume(
    allowed: Allowed<Operator>,
    Path(name): Path<String>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<Json<ResumedJob>, Problem> {
    let resumed =
        pause::resume(&allowed.writes(), &name, allowed.actor(), reason.as_deref()).await?;
    let (next_fire_at, missed) = (resumed.next_fire_at, resumed.passed);
    Ok(Json(ResumedJob { name, status: JobStatus::Active.as_str(), next_fire_at, missed }))
}

/// A trigger.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerJob {
    /// Fields that override those of the job's params, and are checked against the schemas of the workers.
    #[schema(value_type = Option<Object>)]
    params: Option<Map<String, Value>>,
    /// The caller's own key: what is sent twice with one key runs once.
    key: Option<String>,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    reason: Option<String>,
}

/// The execution of a trigger.
#[derive(Debug, Serialize, ToSchema)]
pub struct TriggeredExecution {
    /// Its id.
    execution_id: Uuid,
    /// Its key.
    execution_key: String,
    /// Whether this request made it; otherwise its key was known.
    created: bool,
    /// Its state.
    state: State,
    /// Whether the job is paused; the execution runs all the same.
    paused: bool,
}

/// Runs a job now, even if it is paused or still under way.
#[utoipa::path(post, path = "/jobs/{name}/trigger", tag = "jobs", operation_id = "trigger_job",
    extensions(("x-role" = json!("operator"))),
    params(("name" = String, Path, description = "The job's name.")), request_body = TriggerJob,
    responses((status = 200, description = "Its execution.", body = TriggeredExecution)))]
pub async fn trigger(
    allowed: Allowed<Operator>,
    Path(name): Path<String>,
    Body(request): Body<TriggerJob>,
) -> Result<Json<TriggeredExecution>, Problem> {
    let TriggerJob { params, key, reason } = &request;
    let request = TriggerRequest {
        job: &name,
        key: key.as_deref(),
        params: params.as_ref(),
        reason: reason.as_deref(),
    };
    let done = trigger::trigger(&allowed.writes(), request, allowed.actor()).await?;
    Ok(Json(TriggeredExecution {
        execution_id: done.id.get(),
        execution_key: done.execution_key,
        created: done.created,
        state: done.state,
        paused: done.paused,
    }))
}
