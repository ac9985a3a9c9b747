//! Requeue, discard and restore of one failed execution.

use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_operations::approvals::gate::Outcome;
use sexton_operations::bulks::verified_requeue::{Requeued, requeue_one};
use sexton_operations::failed::actions;
use uuid::Uuid;

use super::show::Done;
use crate::access::Operator;
use crate::api::{ReasonBody, RequiredReason, problem_of_parameter};
use crate::pages::shell::form::Form;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// A requeue.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequeueForm {
    /// The attempt that the operator has seen.
    attempt: i32,
    #[serde(default, deserialize_with = "crate::api::reason")]
    reason: Option<String>,
}

fn done(visit: &Visit<Operator>, id: Uuid, done: Done) -> Response {
    Redirect::to(&visit.url(&format!("/failed/{id}?done={}", done.word()))).into_response()
}

pub(super) async fn requeue(
    visit: Visit<Operator>,
    Path(id): Path<Uuid>,
    Form(RequeueForm { attempt, reason }): Form<RequeueForm>,
) -> Result<Response, Refusal> {
    let Some(seen) = AttemptNumber::new(attempt) else {
        return Err(visit.refuse(problem_of_parameter("attempt", "is no number of an attempt")));
    };
    let by = (visit.actor(), reason.as_deref());
    let requeued = requeue_one(&visit.writes(), ExecutionId::new(id), Some(seen), by).await;
    match requeued.map_err(|error| visit.refuse(error))? {
        Requeued::Done => Ok(done(&visit, id, Done::Requeued)),
        Requeued::Verifying(_) => Ok(done(&visit, id, Done::Verifying)),
    }
}

pub(super) async fn discard(
    visit: Visit<Operator>,
    Path(id): Path<Uuid>,
    Form(RequiredReason { reason }): Form<RequiredReason>,
) -> Result<Response, Refusal> {
    let store = visit.writes();
    let discarded = actions::discard(&store, ExecutionId::new(id), visit.actor(), &reason).await;
    Ok(match discarded.map_err(|error| visit.refuse(error))? {
        Outcome::Done(()) => done(&visit, id, Done::Discarded),
        Outcome::Waits(request) => visit.to_request(&request),
    })
}

pub(super) async fn restore(
    visit: Visit<Operator>,
    Path(id): Path<Uuid>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    let (store, reason) = (visit.writes(), reason.as_deref());
    let restored = actions::restore(&store, ExecutionId::new(id), visit.actor(), reason).await;
    restored.map_err(|error| visit.refuse(error))?;
    Ok(done(&visit, id, Done::Restored))
}
