//! Workers, flows, and the audit.

use axum::Json;
use serde::{Deserialize, Serialize};
use sexton_operations::audit::chain::{self, AuditHead};
use sexton_operations::audit::{self, AuditRequest};
use sexton_operations::flows::{self, FlowDetails};
use sexton_operations::instants::TimeRangeRequest;
use sexton_operations::paging::{MAX_PAGE_ROWS, Page};
use sexton_operations::workers::{self, ListedWorker, WorkerDetails};
use sexton_store::flows::Flow;
use sexton_store::operator::OperatorAction;
use sexton_store::status;
use sexton_store::workers::WorkerFilter;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::extract::{Body, Path, Query};
use super::paging::Paged;
use super::{Items, PageSize, ReasonBody};
use crate::access::{Allowed, Operator, Viewer};
use crate::problem::Problem;

/// Which workers to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListWorkers {
    /// Also workers that have stopped, or were silent for a day.
    all: bool,
    /// Only workers that consume from this pool.
    pool: Option<String>,
}

/// Lists workers, at most 1,000: those that are not gone first, then by name.
#[utoipa::path(get, path = "/workers", tag = "platform", operation_id = "list_workers", extensions(("x-role" = json!("viewer"))),
    params(ListWorkers),
    responses((status = 200, description = "The workers.", body = Items<ListedWorker>)))]
pub async fn list_workers(
    allowed: Allowed<Viewer>,
    Query(ListWorkers { all, pool }): Query<ListWorkers>,
) -> Result<Json<Items<ListedWorker>>, Problem> {
    let filter = WorkerFilter { with_gone: all, pool: pool.as_deref(), ..WorkerFilter::default() };
    let items = workers::list(allowed.reads(), &filter, MAX_PAGE_ROWS, None).await?;
    Ok(Json(Items { items }))
}

/// Shows a worker with what it runs.
#[utoipa::path(get, path = "/workers/{name}", tag = "platform", operation_id = "show_worker", extensions(("x-role" = json!("viewer"))),
    params(("name" = String, Path, description = "The worker's name, or the beginning of its id.")),
    responses((status = 200, description = "The worker.", body = WorkerDetails)))]
pub async fn show_worker(
    allowed: Allowed<Viewer>,
    Path(name): Path<String>,
) -> Result<Json<WorkerDetails>, Problem> {
    Ok(Json(workers::show(allowed.reads(), &name, None).await?))
}

/// Which flows to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListFlows {
    /// Only flows of this name.
    name: Option<String>,
    /// Only flows that have not ended.
    open: bool,
    /// Flows of a page.
    #[param(inline)]
    limit: PageSize,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Lists flows, the newest first.
#[utoipa::path(get, path = "/flows", tag = "executions", operation_id = "list_flows", extensions(("x-role" = json!("viewer"))),
    params(ListFlows),
    responses((status = 200, description = "A page of flows.", body = Page<Flow>)))]
pub async fn list_flows(
    allowed: Allowed<Viewer>,
    Query(ListFlows { name, open, limit, cursor }): Query<ListFlows>,
) -> Result<Paged<Flow>, Problem> {
    Ok(Paged(flows::list(allowed.reads(), name, open, cursor.as_deref(), limit.get()).await?))
}

/// Shows a flow with its members.
#[utoipa::path(get, path = "/flows/{id}", tag = "executions", operation_id = "show_flow", extensions(("x-role" = json!("viewer"))),
    params(("id" = String, Path, description = "The flow's id, or that of a member.")),
    responses((status = 200, description = "The flow.", body = FlowDetails)))]
pub async fn show_flow(
    allowed: Allowed<Viewer>,
    Path(id): Path<String>,
) -> Result<Json<FlowDetails>, Problem> {
    Ok(Json(flows::find(allowed.reads(), &id).await?))
}

/// A flow that was cancelled.
#[derive(Debug, Serialize, ToSchema)]
pub struct CancelledFlow {
    /// The flow.
    flow_id: Uuid,
    /// Members that waited, and have ended.
    cancelled: u64,
}

/// Cancels the members of a flow that wait, and asks the workers of those that run to end them; failed members stay.
#[utoipa::path(post, path = "/flows/{id}/cancel", tag = "executions", operation_id = "cancel_flow",
    extensions(("x-role" = json!("operator"))),
    params(("id" = String, Path, description = "The flow's id, or that of a member.")), request_body = ReasonBody,
    responses((status = 200, description = "It ends.", body = CancelledFlow)))]
pub async fn cancel_flow(
    allowed: Allowed<Operator>,
    Path(id): Path<String>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<Json<CancelledFlow>, Problem> {
    let store = allowed.writes();
    let (flow, cancelled) = flows::cancel(&store, &id, allowed.actor(), reason.as_deref()).await?;
    Ok(Json(CancelledFlow { flow_id: flow.id, cancelled }))
}

/// Which actions to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListActions {
    /// Only by this operator: the whole name, or the part before the @.
    actor: Option<String>,
    /// Only of this kind, such as `requeue`.
    action: Option<String>,
    /// Only on this job or its executions.
    job: Option<String>,
    /// Only on this execution.
    execution: Option<String>,
    /// Only by this bulk, or on it.
    bulk: Option<i64>,
    /// Only at or after this: an instant in RFC 3339, or an age such as `36h`.
    since: Option<String>,
    /// Only before this.
    until: Option<String>,
    /// Actions of a page.
    #[param(inline)]
    limit: PageSize,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Lists operators' actions, the newest first, with values that look like secrets masked.
#[utoipa::path(get, path = "/audit", tag = "platform", operation_id = "list_actions", extensions(("x-role" = json!("viewer"))),
    params(ListActions),
    responses((status = 200, description = "A page of actions.", body = Page<OperatorAction>)))]
pub async fn list_actions(
    allowed: Allowed<Viewer>,
    Query(query): Query<ListActions>,
) -> Result<Paged<OperatorAction>, Problem> {
    let store = allowed.reads();
    let request = AuditRequest {
        actor: query.actor.as_deref(),
        action: query.action.as_deref(),
        job: query.job.as_deref(),
        execution: query.execution.as_deref(),
        bulk: query.bulk,
        range: TimeRangeRequest { since: query.since.as_deref(), until: query.until.as_deref() },
    };
    let filter = request.read(store, status::clock(store).await?).await?;
    let (cursor, limit) = (query.cursor.as_deref(), query.limit.get());
    Ok(Paged(audit::page(store, &filter, cursor, limit, false).await?))
}

/// Shows the head of the audit's chain. Kept elsewhere, it lets `sexton audit verify --head` show later that nothing before it was changed.
#[utoipa::path(get, path = "/audit/head", tag = "platform", operation_id = "show_audit_head", extensions(("x-role" = json!("viewer"))),
    responses((status = 200, description = "The head.", body = AuditHead)))]
pub async fn audit_head(allowed: Allowed<Viewer>) -> Result<Json<AuditHead>, Problem> {
    Ok(Json(chain::head(allowed.reads()).await?))
}
