//! Stops and resumes a bulk.

use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use sexton_operations::bulks::control;

use crate::access::Operator;
use crate::api::ReasonBody;
use crate::pages::shell::form::Form;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

fn back(visit: &Visit<Operator>, id: i64) -> Response {
    Redirect::to(&visit.url(&format!("/bulks/{id}"))).into_response()
}

pub(super) async fn stop(
    visit: Visit<Operator>,
    Path(id): Path<i64>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    let stopped = control::stop(&visit.writes(), id, visit.actor(), reason.as_deref()).await;
    stopped.map_err(|error| visit.refuse(error))?;
    Ok(back(&visit, id))
}

pub(super) async fn resume(
    visit: Visit<Operator>,
    Path(id): Path<i64>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    let resumed = control::resume(&visit.writes(), id, visit.actor(), reason.as_deref()).await;
    resumed.map_err(|error| visit.refuse(error))?;
    Ok(back(&visit, id))
}
