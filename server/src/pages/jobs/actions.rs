//! Pause and resume of a job.

use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use sexton_operations::jobs::pause as operations;

use super::show::Done;
use crate::access::Operator;
use crate::api::{ReasonBody, RequiredReason};
use crate::pages::shell::form::Form;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Leads back to the job. Its name is one that was found.
pub(super) fn done(visit: &Visit<Operator>, name: &str, done: Done) -> Response {
    Redirect::to(&visit.url(&format!("/jobs/{name}?done={}", done.word()))).into_response()
}

pub(super) async fn pause(
    visit: Visit<Operator>,
    Path(name): Path<String>,
    Form(RequiredReason { reason }): Form<RequiredReason>,
) -> Result<Response, Refusal> {
    let paused = operations::pause(&visit.writes(), &name, visit.actor(), &reason).await;
    paused.map_err(|error| visit.refuse(error))?;
    Ok(done(&visit, &name, Done::Paused))
}

pub(super) async fn resume(
    visit: Visit<Operator>,
    Path(name): Path<String>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    let (store, reason) = (visit.writes(), reason.as_deref());
    let resumed = operations::resume(&store, &name, visit.actor(), reason).await;
    resumed.map_err(|error| visit.refuse(error))?;
    Ok(done(&visit, &name, Done::Resumed))
}
