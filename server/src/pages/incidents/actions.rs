//! Acknowledges, silences and resolves an incident.

use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use sexton_model::duration;
use sexton_operations::incidents::{self, IncidentRequest};
use uuid::Uuid;

use super::show::Done;
use crate::access::Operator;
use crate::api::{ReasonBody, problem_of_parameter};
use crate::pages::shell::form::Form;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

async fn act(
    visit: &Visit<Operator>,
    id: Uuid,
    (request, done): (IncidentRequest, Done),
    reason: Option<&str>,
) -> Result<Response, Refusal> {
    let acted = incidents::act(&visit.writes(), id, request, visit.actor(), reason, None).await;
    acted.map_err(|error| visit.refuse(error))?;
    Ok(Redirect::to(&visit.url(&format!("/incidents/{id}?done={}", done.word()))).into_response())
}

pub(super) async fn acknowledge(
    visit: Visit<Operator>,
    Path(id): Path<Uuid>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    let request = (IncidentRequest::Acknowledge, Done::Acknowledged);
    act(&visit, id, request, reason.as_deref()).await
}

/// A silence.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SilenceForm {
    /// A duration such as `2h`.
    #[serde(rename = "for")]
    time: String,
    #[serde(default, deserialize_with = "crate::api::required_reason")]
    reason: String,
}

pub(super) async fn silence(
    visit: Visit<Operator>,
    Path(id): Path<Uuid>,
    Form(SilenceForm { time, reason }): Form<SilenceForm>,
) -> Result<Response, Refusal> {
    let time = duration::parse(time.trim());
    let time =
        time.map_err(|error| visit.refuse(problem_of_parameter("for", &error.to_string())))?;
    act(&visit, id, (IncidentRequest::Silence(time), Done::Silenced), Some(&reason)).await
}

pub(super) async fn unsilence(
    visit: Visit<Operator>,
    Path(id): Path<Uuid>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    let request = (IncidentRequest::Unsilence, Done::Unsilenced);
    act(&visit, id, request, reason.as_deref()).await
}

pub(super) async fn resolve(
    visit: Visit<Operator>,
    Path(id): Path<Uuid>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    act(&visit, id, (IncidentRequest::Resolve, Done::Resolved), reason.as_deref()).await
}
