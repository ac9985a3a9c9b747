//! Previews and creates bulks.

mod options;
mod selection;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sexton_model::bulk::BulkKind;
use sexton_model::state::State;
use sexton_operations::approvals::gate::{ApprovalDemand, Outcome};
use sexton_operations::bulks::request::{create_restore, find_discarding};
use sexton_operations::bulks::watch::find;
use sexton_operations::secrets::mask_bulk;
use sexton_store::Store;
use sexton_store::approvals::ApprovalRequest;
use sexton_store::bulk::{Bulk, Preview};
use utoipa::ToSchema;
use uuid::Uuid;

use self::options::read_rate;
use super::approvals::waiting;
use super::extract::{Body, Path};
use crate::access::{Allowed, Operator};
use crate::problem::Problem;

/// An action on many executions: those of a filter, or some by their ids.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRequest {
    /// The action on each.
    kind: BulkKind,
    /// Executions by their ids, at most 1,000.
    #[serde(default)]
    #[schema(max_items = 1000)]
    executions: Vec<SeenExecution>,
    /// Or those of a filter.
    filter: Option<BulkFilter>,
    /// Everything outside muted groups; needed if nothing else selects.
    #[serde(default)]
    all: bool,
    /// The instant of the preview: what has failed since is not selected.
    previewed_at: Option<DateTime<Utc>>,
    /// How many the preview has counted; if that is no longer so, nothing is done.
    count: Option<u64>,
    /// Of a requeue: the number of executions to requeue first; the others follow when all of these have succeeded.
    #[schema(minimum = 1, maximum = 1000)]
    canary: Option<u32>,
    /// Highest rate, such as `50/s`, `10/m` or `1000/h`; as fast as the platform can if absent.
    rate: Option<String>,
    /// Of a requeue: the pool to requeue to; each to its own if absent.
    pool: Option<String>,
    /// Also to a pool from which no worker consumes.
    #[serde(default)]
    force_pool: bool,
    /// Of a requeue: without the verify tasks of the jobs, which the audit records.
    #[serde(default)]
    no_verify: bool,
    /// Reason, recorded in the audit; a discard needs one.
    #[serde(default, deserialize_with = "super::reason")]
    reason: Option<String>,
}

/// Which executions, as parameters of `/failures` or, to cancel, `/executions` select them.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BulkFilter {
    /// Only of this job, even a deleted one.
    job: Option<String>,
    /// Only of jobs whose names begin with this, such as `billing.`.
    job_prefix: Option<String>,
    /// Only of this task type.
    task_type: Option<String>,
    /// Only of this pool.
    pool: Option<String>,
    /// Only with this error class, such as `exit_1`.
    error_class: Option<String>,
    /// Only with these words in the error's message, in this order; the last one may be incomplete.
    text: Option<String>,
    /// Only of this failure group: its fingerprint, or a unique beginning.
    group: Option<String>,
    /// Only at or after this: an instant in RFC 3339, or an age such as `36h`, which counts from `previewed_at` if that is sent.
    since: Option<String>,
    /// Only before this.
    until: Option<String>,
    /// Only with their last attempt on the worker of this name.
    worker: Option<String>,
    /// Only of jobs with these labels, each such as `team=billing`.
    label: Vec<String>,
    /// Only with these in their params, each such as `order.id=7`.
    param: Vec<String>,
    /// Of failed executions: also those of muted groups.
    muted: bool,
    /// To cancel: only in these states, of `pending`, `retrying` and `running`.
    state: Vec<State>,
}

/// An execution at an attempt number.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SeenExecution {
    /// The execution.
    id: Uuid,
    /// The attempt number that the sender has seen: a later failure is left alone. The current one if absent.
    #[schema(minimum = 1)]
    attempt: Option<i32>,
}

/// What a bulk would act on.
#[derive(Debug, Serialize, ToSchema)]
pub struct PreviewedBulk {
    /// The counts. Send `previewed_at` and `count` back to act on exactly these.
    #[serde(flatten)]
    counts: Preview,
    /// Those that were selected by their ids, with their attempt numbers: send them back, too.
    executions: Vec<SeenExecution>,
    /// What it needs from other people; `null`: nothing.
    approval: Option<ApprovalDemand>,
}

/// Counts what a bulk would act on; changes nothing.
///
/// Send the same request to `/bulks` with `previewed_at` and `count` of the answer: it acts on what was counted, and on no later
/// failure.
#[utoipa::path(post, path = "/bulks:preview", tag = "bulks", operation_id = "preview_bulk", extensions(("x-role" = json!("operator"))),
    request_body = BulkRequest,
    responses((status = 200, description = "What it would act on.", body = PreviewedBulk)))]
pub async fn preview(
    allowed: Allowed<Operator>,
    Body(request): Body<BulkRequest>,
) -> Result<Json<PreviewedBulk>, Problem> {
    let store = allowed.reads();
    let checked = request.check_options()?;
    request.check_pool(store, &checked).await?;
    let bulk = request.preview(store).await?;
    let approval = bulk.demand(store, request.action(&checked)).await?;
    let executions = bulk
        .seen()
        .iter()
        .map(|(id, attempt)| SeenExecution { id: id.get(), attempt: Some(attempt.get()) });
    let executions = executions.collect();
    Ok(Json(PreviewedBulk { counts: bulk.counts, executions, approval }))
}

/// Creates a bulk, which the schedulers carry out.
///
/// Without `previewed_at` it acts on what matches now. With `count` it is refused if that is not how many match: somebody has requeued
/// or discarded some since the preview.
#[utoipa::path(post, path = "/bulks", tag = "bulks", operation_id = "create_bulk", extensions(("x-role" = json!("operator"))),
    request_body = BulkRequest,
    responses((status = 201, description = "The bulk.", body = Bulk),
        (status = 202, description = "It waits for the approval of another person.", body = ApprovalRequest, headers(("Location", description = "Where to look at the request.")))))]
pub async fn create(
    allowed: Allowed<Operator>,
    Body(request): Body<BulkRequest>,
) -> Result<Response, Problem> {
    let store = allowed.writes();
    let checked = request.check_options()?;
    request.check_reason()?;
    request.check_pool(&store, &checked).await?;
    let bulk = request.preview(&store).await?;
    bulk.check()?;
    if let Some(count) = request.count {
        bulk.check_count(count)?;
    }
    match bulk.create(&store, request.action(&checked), allowed.actor()).await? {
        Outcome::Done(id) => Ok(created(&store, id).await?.into_response()),
        Outcome::Waits(request) => Ok(waiting(&request, &allowed.base_path())),
    }
}

async fn created(store: &Store, id: i64) -> Result<(StatusCode, Json<Bulk>), Problem> {
    let mut bulk = find(store, id).await?;
    mask_bulk(&mut bulk);
    Ok((StatusCode::CREATED, Json(bulk)))
}

/// How to take discards back.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RestoreBulk {
    /// At most so many per time, such as `50/s`, `10/m` or `1000/h`.
    rate: Option<String>,
    /// Reason, recorded in the audit.
    #[serde(deserialize_with = "super::reason")]
    reason: Option<String>,
}

/// Creates a bulk that restores what another one has discarded.
#[utoipa::path(post, path = "/bulks/{id}/restore", tag = "bulks", operation_id = "restore_bulk",
    extensions(("x-role" = json!("operator"))),
    params(("id" = i64, Path, description = "The number of the bulk that discarded.")), request_body = RestoreBulk,
    responses((status = 201, description = "The bulk that restores.", body = Bulk)))]
pub async fn restore(
    allowed: Allowed<Operator>,
    Path(id): Path<i64>,
    Body(RestoreBulk { rate, reason }): Body<RestoreBulk>,
) -> Result<(StatusCode, Json<Bulk>), Problem> {
    let store = allowed.writes();
    let rate = read_rate(rate.as_deref()).map_err(Problem::invalid)?;
    let discarding = find_discarding(&store, id).await?;
    let by = (allowed.actor(), reason.as_deref());
    let id = create_restore(&store, &discarding, rate, by).await?;
    created(&store, id).await
}
