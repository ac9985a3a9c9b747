//! Cancel of one execution, and its repetition.

use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use sexton_model::id::ExecutionId;
use sexton_operations::executions::{cancel, details};
use sexton_operations::jobs::trigger::{TriggerRequest, trigger};
use sexton_store::operator::Cancelled;
use uuid::Uuid;

use super::show::Done;
use crate::access::Operator;
use crate::api::ReasonBody;
use crate::pages::shell::form::Form;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// A repetition.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunAgainForm {
    /// Drawn with the page: a form that is sent twice runs once.
    key: Option<Uuid>,
    #[serde(default, deserialize_with = "crate::api::reason")]
    reason: Option<String>,
}

fn done(visit: &Visit<Operator>, id: Uuid, done: Done) -> Response {
    Redirect::to(&visit.url(&format!("/executions/{id}?done={}", done.word()))).into_response()
}

pub(super) async fn cancel(
    visit: Visit<Operator>,
    Path(id): Path<Uuid>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    let (store, reason) = (visit.writes(), reason.as_deref());
    let cancelled = cancel::cancel(&store, ExecutionId::new(id), visit.actor(), reason).await;
    Ok(match cancelled.map_err(|error| visit.refuse(error))? {
        Cancelled::Immediately => done(&visit, id, Done::Cancelled),
        Cancelled::Requested => done(&visit, id, Done::CancelRequested),
    })
}

/// Triggers the execution's job with the execution's params. The page shows them masked, so they are read here.
pub(super) async fn run_again(
    visit: Visit<Operator>,
    Path(id): Path<Uuid>,
    Form(RunAgainForm { key, reason }): Form<RunAgainForm>,
) -> Result<Response, Refusal> {
    let store = visit.writes();
    // Readers of an open page share its key.
    let key = key.map(|key| Uuid::new_v5(&key, visit.actor().name.as_bytes()));
    let key = key.map(|key| format!("console-{key}"));
    let repeated = async {
        let execution = details::find(&store, id, true).await?.execution;
        let request = TriggerRequest {
            job: &execution.job_name,
            key: key.as_deref(),
            params: execution.params.as_object(),
            reason: reason.as_deref(),
        };
        trigger(&store, request, visit.actor()).await
    };
    let triggered = repeated.await.map_err(|error| visit.refuse(error))?;
    let what = if triggered.created { Done::RunAgain } else { Done::SentTwice };
    Ok(done(&visit, triggered.id.get(), what))
}
