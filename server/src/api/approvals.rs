//! Actions that wait for another person, and the rules by which they do.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use sexton_operations::approvals::gate::Outcome;
use sexton_operations::approvals::proposal::role;
use sexton_operations::approvals::requests;
use sexton_operations::approvals::rules::{self, ApprovalRule, DEFAULT_ABOVE, RuleRequest};
use sexton_operations::decisions;
use sexton_operations::error::OperationError;
use sexton_operations::paging::Page;
use sexton_store::Store;
use sexton_store::approvals::ApprovalRequest;
use utoipa::{IntoParams, ToSchema};

use super::extract::{Body, Path, Query};
use super::paging::Paged;
use super::{BASE_PATH, Items, PageSize, Reason, ReasonBody, RequiredReason};
use crate::access::{Admin, Allowed, Caller, Operator, Unattended, Viewer};
use crate::problem::Problem;

/// Answers with what was carried out, or 202 with the request that waits. `base` stands before every path.
pub(super) fn answer<T: IntoResponse>(outcome: Outcome<T>, base: &str) -> Response {
    match outcome {
        Outcome::Done(done) => done.into_response(),
        Outcome::Waits(request) => waiting(&request, base),
    }
}

/// 202, with the request that waits.
pub(super) fn waiting(request: &ApprovalRequest, base: &str) -> Response {
    let location = [(LOCATION, format!("{base}{BASE_PATH}/approvals/{}", request.id))];
    (StatusCode::ACCEPTED, location, Json(request)).into_response()
}

/// Which requests to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListApprovals {
    /// Also requests that have ended or expired.
    all: bool,
    /// Requests of a page.
    #[param(inline)]
    limit: PageSize,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Lists actions that wait for another person, the newest first, without their params and ids.
#[utoipa::path(get, path = "/approvals", tag = "approvals", operation_id = "list_approvals", extensions(("x-role" = json!("viewer"))),
    params(ListApprovals),
    responses((status = 200, description = "A page of requests.", body = Page<ApprovalRequest>)))]
pub async fn list(
    allowed: Allowed<Viewer>,
    Query(query): Query<ListApprovals>,
) -> Result<Paged<ApprovalRequest>, Problem> {
    let ListApprovals { all, limit, cursor } = query;
    Ok(Paged(requests::list(allowed.reads(), all, cursor.as_deref(), limit.get()).await?))
}

/// Shows a request: the whole action, with secrets masked, and who has approved it.
#[utoipa::path(get, path = "/approvals/{id}", tag = "approvals", operation_id = "show_approval",
    extensions(("x-role" = json!("viewer"))),
    params(("id" = i64, Path, description = "The request's number.")),
    responses((status = 200, description = "The request.", body = ApprovalRequest)))]
pub async fn show(
    allowed: Allowed<Viewer>,
    Path(id): Path<i64>,
) -> Result<Json<ApprovalRequest>, Problem> {
    Ok(Json(requests::find(allowed.reads(), id).await?))
}

/// Refuses a caller who could not have requested it.
pub(crate) async fn check_role(store: &Store, caller: &Caller, id: i64) -> Result<(), Problem> {
    let needed = role(&requests::find(store, id).await?.kind);
    if caller.role < needed {
        return Err(Problem::forbidden(&caller.name, caller.role, needed));
    }
    Ok(())
}

/// Approves a request. A client who leaves does not end what is being carried out.
pub(crate) async fn approve_by(
    allowed: &Allowed<Operator>,
    id: i64,
    reason: Option<String>,
) -> Result<ApprovalRequest, OperationError> {
    let busy = "other approvals go on at this moment; nothing was approved, send this one again in some seconds";
    let (store, actor) = (allowed.writes(), allowed.actor().clone());
    let work = async move { decisions::approve(&store, id, &actor, reason.as_deref()).await };
    let running = allowed.spawn_limited(Unattended::Approval, work);
    let running = running.ok_or_else(|| OperationError::Failed(busy.to_owned()))?;
    running.await.map_err(|error| OperationError::Failed(error.to_string()))?
}

/// Approves a request. The last approval carries it out, and the answer says what became of it.
///
/// Nobody approves a request of their own, nor one twice; an edit needs the role editor. One that is approved and not carried out, because the
/// server ended in between, is carried out by this.
#[utoipa::path(post, path = "/approvals/{id}/approve", tag = "approvals", operation_id = "approve",
    extensions(("x-role" = json!("operator"))),
    params(("id" = i64, Path, description = "The request's number.")), request_body = ReasonBody,
    responses((status = 200, description = "The request.", body = ApprovalRequest)))]
pub async fn approve(
    allowed: Allowed<Operator>,
    Path(id): Path<i64>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<Json<ApprovalRequest>, Problem> {
    check_role(allowed.reads(), allowed.caller(), id).await?;
    Ok(Json(approve_by(&allowed, id, reason).await?))
}

/// Rejects a request; the person who requested it takes it back so.
#[utoipa::path(post, path = "/approvals/{id}/reject", tag = "approvals", operation_id = "reject",
    extensions(("x-role" = json!("operator"))),
    params(("id" = i64, Path, description = "The request's number.")), request_body = RequiredReason,
    responses((status = 200, description = "The request.", body = ApprovalRequest)))]
pub async fn reject(
    allowed: Allowed<Operator>,
    Path(id): Path<i64>,
    Body(RequiredReason { reason }): Body<RequiredReason>,
) -> Result<Json<ApprovalRequest>, Problem> {
    check_role(allowed.reads(), allowed.caller(), id).await?;
    let (store, actor) = (allowed.writes(), allowed.actor());
    Ok(Json(decisions::reject(&store, id, actor, Some(&reason)).await?))
}

/// Lists the rules by which actions wait.
#[utoipa::path(get, path = "/approval-rules", tag = "approvals", operation_id = "list_approval_rules",
    extensions(("x-role" = json!("viewer"))),
    responses((status = 200, description = "The rules by name.", body = Items<ApprovalRule>)))]
pub async fn list_rules(allowed: Allowed<Viewer>) -> Result<Json<Items<ApprovalRule>>, Problem> {
    Ok(Json(Items { items: rules::list(allowed.reads()).await? }))
}

/// A rule.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetApprovalRule {
    /// Only for jobs with this label, such as `team=billing`; all jobs if absent.
    label: Option<String>,
    /// How many people it takes, the one who requests included.
    #[schema(minimum = 2, maximum = 5)]
    people: i64,
    /// Bulks that requeue or cancel, and backfills, wait above this number of executions; edits, discards and requeues into another pool always.
    #[serde(default = "default_above")]
    #[schema(minimum = 1, maximum = 2_147_483_647, default = 100)]
    above: i64,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    reason: Option<String>,
}

const fn default_above() -> i64 {
    DEFAULT_ABOVE as i64
}

/// Sets a rule, in place of one of the same name.
#[utoipa::path(put, path = "/approval-rules/{name}", tag = "approvals", operation_id = "set_approval_rule",
    extensions(("x-role" = json!("admin"))),
    params(("name" = String, Path, description = "The rule's name.")), request_body = SetApprovalRule,
    responses((status = 200, description = "The rule.", body = ApprovalRule)))]
pub async fn set_rule(
    allowed: Allowed<Admin>,
    Path(name): Path<String>,
    Body(rule): Body<SetApprovalRule>,
) -> Result<Json<ApprovalRule>, Problem> {
    let SetApprovalRule { label, people, above, reason } = rule;
    let request = RuleRequest { name: &name, label: label.as_deref(), people, above };
    let set = rules::set(&allowed.writes(), request, allowed.actor(), reason.as_deref()).await;
    set.map(Json).map_err(|error| Problem::from(error).in_body(&[]))
}

/// Deletes a rule. Requests that wait by it still take as many people.
#[utoipa::path(delete, path = "/approval-rules/{name}", tag = "approvals", operation_id = "delete_approval_rule",
    extensions(("x-role" = json!("admin"))),
    params(("name" = String, Path, description = "The rule's name."), Reason),
    responses((status = 204, description = "It is deleted.")))]
pub async fn delete_rule(
    allowed: Allowed<Admin>,
    Path(name): Path<String>,
    Query(Reason { reason }): Query<Reason>,
) -> Result<StatusCode, Problem> {
    rules::delete(&allowed.writes(), &name, allowed.actor(), reason.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}
