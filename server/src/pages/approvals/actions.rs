//! Approves and rejects a request.

use axum::extract::Path;
use axum::response::Response;
use sexton_operations::decisions;

use crate::access::Operator;
use crate::api::approvals::{approve_by, check_role};
use crate::api::{ReasonBody, RequiredReason};
use crate::pages::shell::form::Form;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

pub(super) async fn approve(
    visit: Visit<Operator>,
    Path(id): Path<i64>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    let checked = check_role(visit.reads(), visit.caller(), id).await;
    checked.map_err(|problem| visit.refuse(problem))?;
    let approved = approve_by(visit.allowed(), id, reason).await;
    Ok(visit.to_request(&approved.map_err(|error| visit.refuse(error))?))
}

pub(super) async fn reject(
    visit: Visit<Operator>,
    Path(id): Path<i64>,
    Form(RequiredReason { reason }): Form<RequiredReason>,
) -> Result<Response, Refusal> {
    let (store, caller) = (visit.writes(), visit.caller());
    check_role(visit.reads(), caller, id).await.map_err(|problem| visit.refuse(problem))?;
    let rejected = decisions::reject(&store, id, visit.actor(), Some(&reason)).await;
    Ok(visit.to_request(&rejected.map_err(|error| visit.refuse(error))?))
}
