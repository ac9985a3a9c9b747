//! Failed executions.

use axum::Json;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use sexton_model::failures::Order;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::State;
use sexton_operations::bulks::verified_requeue::{Requeued, requeue_one};
use sexton_operations::execution_ids;
use sexton_operations::failed::actions;
use sexton_operations::failed::details::{self, FailureDetails};
use sexton_operations::failed::list;
use sexton_operations::filter::FailureScope;
use sexton_operations::paging::Page;
use sexton_store::approvals::ApprovalRequest;
use sexton_store::failures::FailedExecution;
use sexton_store::status;
use utoipa::ToSchema;
use uuid::Uuid;

use super::approvals::answer;
use super::extract::{Body, Path, Query};
use super::filtered::filtered_query;
use super::paging::Paged;
use super::{PageSize, ReasonBody, RequiredReason, problem_of_field};
use crate::access::{Allowed, Operator, Viewer};
use crate::problem::Problem;

filtered_query! {
    /// Which failures to list.
    pub ListFailures {
        /// Discarded executions instead of failed ones.
        discarded: bool,
        /// Also those of muted groups.
        muted: bool,
        /// Their order.
        #[param(inline)]
        sort: Order,
        /// Failures of a page.
        #[param(inline)]
        limit: PageSize,
        /// `next_cursor` of the page before.
        cursor: Option<String>,
    }
}

/// Lists failed executions, their params masked.
#[utoipa::path(get, path = "/failures", tag = "failures", operation_id = "list_failures", extensions(("x-role" = json!("viewer"))),
    params(ListFailures),
    responses((status = 200, description = "A page of failures.", body = Page<FailedExecution>)))]
pub async fn list(
    allowed: Allowed<Viewer>,
    Query(query): Query<ListFailures>,
) -> Result<Paged<FailedExecution>, Problem> {
    let store = allowed.reads();
    let order = query.sort;
    let after = list::read_cursor(query.cursor.as_deref(), order)?;
    let now = status::clock(store).await?;
    let scope = FailureScope { discarded: query.discarded, muted: query.muted };
    let filter = query.filter().read_failures(store, scope, now).await?;
    Ok(Paged(list::page(store, &filter, order, after, query.limit.get()).await?))
}

filtered_query! {
    /// Which failures to count.
    pub CountFailures {
        /// Discarded executions instead of failed ones.
        discarded: bool,
        /// Also those of muted groups.
        muted: bool,
    }
}

/// A number of rows.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct Count {
    /// The number, at most 10,000.
    value: u64,
    /// Whether it is exact; otherwise there are more.
    exact: bool,
}

/// Counts failed executions, up to 10,000.
#[utoipa::path(get, path = "/failures:count", tag = "failures", operation_id = "count_failures", extensions(("x-role" = json!("viewer"))),
    params(CountFailures),
    responses((status = 200, description = "How many there are.", body = Count)))]
pub async fn count(
    allowed: Allowed<Viewer>,
    Query(query): Query<CountFailures>,
) -> Result<Json<Count>, Problem> {
    let store = allowed.reads();
    let scope = FailureScope { discarded: query.discarded, muted: query.muted };
    let now = status::clock(store).await?;
    let filter = query.filter().read_failures(store, scope, now).await?;
    let (value, exact) = list::count(store, &filter).await?;
    Ok(Json(Count { value, exact }))
}

/// Shows an execution with what explains its failure: attempts, the end of the output, its group, the parked message.
#[utoipa::path(get, path = "/failures/{id}", tag = "failures", operation_id = "show_failure", extensions(("x-role" = json!("viewer"))),
    params(("id" = Uuid, Path, description = "The execution's id.")),
    responses((status = 200, description = "The execution.", body = FailureDetails)))]
pub async fn show(
    allowed: Allowed<Viewer>,
    Path(id): Path<Uuid>,
) -> Result<Json<FailureDetails>, Problem> {
    let found = details::find(allowed.reads(), id).await?;
    let missing = || Problem::from(execution_ids::missing(ExecutionId::new(id)));
    found.map(Json).ok_or_else(missing)
}

/// A requeue.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RequeueFailure {
    /// The attempt number that the sender has seen: a later failure is not requeued. The current one if absent.
    #[schema(minimum = 1)]
    attempt: Option<i32>,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    reason: Option<String>,
}

/// An execution and its new state.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangedExecution {
    /// The execution.
    id: Uuid,
    /// Its state now.
    state: State,
}

/// What became of a requeue.
#[derive(Debug, Serialize, ToSchema)]
pub struct RequeuedExecution {
    /// The execution.
    id: Uuid,
    /// Its state now.
    state: State,
    /// The bulk that runs the verify task of its job first, and requeues it if the effect has not happened; absent: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    bulk: Option<i64>,
}

/// Puts a failed execution back into its queue, with all of its retries; after the verify task of its job, if there is one.
#[utoipa::path(post, path = "/failures/{id}/requeue", tag = "failures", operation_id = "requeue_failure",
    extensions(("x-role" = json!("operator"))),
    params(("id" = Uuid, Path, description = "The execution's id.")), request_body = RequeueFailure,
    responses((status = 200, description = "It waits for a worker, or is verified.", body = RequeuedExecution)))]
pub async fn requeue(
    allowed: Allowed<Operator>,
    Path(id): Path<Uuid>,
    Body(RequeueFailure { attempt, reason }): Body<RequeueFailure>,
) -> Result<Json<RequeuedExecution>, Problem> {
    let no_number = || problem_of_field("/attempt", "is no number of an attempt");
    let seen = attempt.map(|number| AttemptNumber::new(number).ok_or_else(no_number));
    let by = (allowed.actor(), reason.as_deref());
    let execution = ExecutionId::new(id);
    let done = requeue_one(&allowed.writes(), execution, seen.transpose()?, by).await?;
    let (state, bulk) = match done {
        Requeued::Done => (State::Pending, None),
        Requeued::Verifying(bulk) => (State::Failed, Some(bulk)),
    };
    Ok(Json(RequeuedExecution { id, state, bulk }))
}

/// Gives a failed execution up. It can be restored until retention removes it.
#[utoipa::path(post, path = "/failures/{id}/discard", tag = "failures", operation_id = "discard_failure",
    extensions(("x-role" = json!("operator"))),
    params(("id" = Uuid, Path, description = "The execution's id.")), request_body = RequiredReason,
    responses((status = 200, description = "It is discarded.", body = ChangedExecution),
        (status = 202, description = "It waits for the approval of another person.", body = ApprovalRequest, headers(("Location", description = "Where to look at the request.")))))]
pub async fn discard(
    allowed: Allowed<Operator>,
    Path(id): Path<Uuid>,
    Body(RequiredReason { reason }): Body<RequiredReason>,
) -> Result<Response, Problem> {
    let (store, execution) = (allowed.writes(), ExecutionId::new(id));
    let done = actions::discard(&store, execution, allowed.actor(), &reason).await?;
    let done = done.map(|()| Json(ChangedExecution { id, state: State::Discarded }));
    Ok(answer(done, &allowed.base_path()))
}

/// Takes a discard back: the execution is failed again.
#[utoipa::path(post, path = "/failures/{id}/restore", tag = "failures", operation_id = "restore_failure",
    extensions(("x-role" = json!("operator"))),
    params(("id" = Uuid, Path, description = "The execution's id.")), request_body = ReasonBody,
    responses((status = 200, description = "It is failed again.", body = ChangedExecution)))]
pub async fn restore(
    allowed: Allowed<Operator>,
    Path(id): Path<Uuid>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<Json<ChangedExecution>, Problem> {
    let (store, reason) = (allowed.writes(), reason.as_deref());
    actions::restore(&store, ExecutionId::new(id), allowed.actor(), reason).await?;
    Ok(Json(ChangedExecution { id, state: State::Failed }))
}
