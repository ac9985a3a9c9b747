//! Executions.

use axum::Json;
use serde::{Deserialize, Serialize};
use sexton_model::id::ExecutionId;
use sexton_model::output::Output;
use sexton_model::state::State;
use sexton_operations::executions::cancel;
use sexton_operations::executions::details::{self, ExecutionDetails};
use sexton_operations::executions::list;
use sexton_operations::executions::output::{WrittenOutput, read as read_output};
use sexton_operations::paging::Page;
use sexton_store::executions::{Execution, MAX_BRIEFLY_WALKED_EXECUTIONS};
use sexton_store::operator::Cancelled;
use sexton_store::status;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::extract::{Body, Path, Query};
use super::filtered::filtered_query;
use super::paging::Paged;
use super::{PageSize, ReasonBody};
use crate::access::{Allowed, Operator, Viewer};
use crate::problem::Problem;

filtered_query! {
    /// Which executions to list.
    pub ListExecutions {
        /// Only in this state. May be repeated.
        #[param(explode)]
        state: Vec<State>,
        /// Executions of a page.
        #[param(inline)]
        limit: PageSize,
        /// `next_cursor` of the page before.
        cursor: Option<String>,
    }
}

/// Lists executions, the latest claim first, their params masked.
///
/// A page that had to look at very many executions may be short and still have a successor.
#[utoipa::path(get, path = "/executions", tag = "executions", operation_id = "list_executions", extensions(("x-role" = json!("viewer"))),
    params(ListExecutions),
    responses((status = 200, description = "A page of executions.", body = Page<Execution>)))]
pub async fn list(
    allowed: Allowed<Viewer>,
    Query(query): Query<ListExecutions>,
) -> Result<Paged<Execution>, Problem> {
    let store = allowed.reads();
    let after = list::read_cursor(query.cursor.as_deref())?;
    let now = status::clock(store).await?;
    let filter = query.filter().read_executions(store, &query.state, now).await?;
    Ok(Paged(
        list::list(store, &filter, after, query.limit.get(), MAX_BRIEFLY_WALKED_EXECUTIONS)
            .await?
            .page,
    ))
}

/// Shows an execution with its attempts and what operators did with it, its params masked.
#[utoipa::path(get, path = "/executions/{id}", tag = "executions", operation_id = "show_execution",
    extensions(("x-role" = json!("viewer"))),
    params(("id" = Uuid, Path, description = "The execution's id.")),
    responses((status = 200, description = "The execution.", body = ExecutionDetails)))]
pub async fn show(
    allowed: Allowed<Viewer>,
    Path(id): Path<Uuid>,
) -> Result<Json<ExecutionDetails>, Problem> {
    Ok(Json(details::find(allowed.reads(), id, false).await?))
}

/// What became of a cancel.
#[derive(Debug, Serialize, ToSchema)]
pub struct CancelledExecution {
    /// The execution.
    id: Uuid,
    /// Whether it has ended; otherwise it runs, and its worker ends it.
    ended: bool,
}

/// Cancels an execution that waits, or asks the worker of one that runs to end it.
#[utoipa::path(post, path = "/executions/{id}/cancel", tag = "executions", operation_id = "cancel_execution",
    extensions(("x-role" = json!("operator"))),
    params(("id" = Uuid, Path, description = "The execution's id.")), request_body = ReasonBody,
    responses((status = 200, description = "It has ended, or will.", body = CancelledExecution)))]
pub async fn cancel(
    allowed: Allowed<Operator>,
    Path(id): Path<Uuid>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<Json<CancelledExecution>, Problem> {
    let store = allowed.writes();
    let (execution, reason) = (ExecutionId::new(id), reason.as_deref());
    let done = cancel::cancel(&store, execution, allowed.actor(), reason).await?;
    Ok(Json(CancelledExecution { id, ended: done == Cancelled::Immediately }))
}

/// Which attempt's output to show.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ShowOutput {
    /// The attempt's number; the last one if absent.
    attempt: Option<i32>,
}

/// What an attempt wrote.
#[derive(Debug, Serialize, ToSchema)]
pub struct AttemptOutput {
    /// The execution.
    execution_id: Uuid,
    /// The attempt's number.
    number: i32,
    /// How it ended; absent: it runs.
    outcome: Option<String>,
    /// What is kept of it; absent: it wrote nothing.
    output: Option<Output>,
}

/// Shows what an attempt wrote.
#[utoipa::path(get, path = "/executions/{id}/output", tag = "executions", operation_id = "show_output",
    extensions(("x-role" = json!("viewer"))),
    params(("id" = Uuid, Path, description = "The execution's id."), ShowOutput),
    responses((status = 200, description = "The output.", body = AttemptOutput)))]
pub async fn output(
    allowed: Allowed<Viewer>,
    Path(id): Path<Uuid>,
    Query(ShowOutput { attempt }): Query<ShowOutput>,
) -> Result<Json<AttemptOutput>, Problem> {
    let WrittenOutput { number, outcome, output } =
        read_output(allowed.reads(), id, attempt).await?;
    Ok(Json(AttemptOutput { execution_id: id, number, outcome, output }))
}
