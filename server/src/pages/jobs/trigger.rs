//! `/jobs/{name}/trigger`: runs a job now, with other params if wanted.

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use serde_json::json;
use sexton_model::access::Role;
use sexton_operations::error::OperationError;
use sexton_operations::job_names;
use sexton_operations::jobs::trigger::{TriggerRequest, read_params, trigger};
use sexton_operations::secrets::mask_job;
use sexton_store::jobs::Job;
use uuid::Uuid;

use super::problems::problems_of;
use crate::access::{Operator, Permission, Viewer};
use crate::pages::shell::copy;
use crate::pages::shell::form::Form;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// A trigger.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TriggerForm {
    /// Drawn with the page: a form that is sent twice runs once.
    key: Option<Uuid>,
    /// JSON, as the person has written it.
    params: String,
    #[serde(deserialize_with = "crate::api::reason")]
    reason: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "jobs/trigger.html")]
struct TriggerPage {
    frame: Frame,
    job: Job,
    form: TriggerForm,
    problems: Vec<String>,
    role: Role,
}

impl TriggerPage {
    fn path(&self) -> String {
        format!("/jobs/{}/trigger", self.job.name)
    }

    fn command(&self) -> String {
        let example = r#"{"customer": 4891}"#;
        copy::command(&["jobs", "trigger", &self.job.name, "--params", example])
    }

    fn request(&self) -> String {
        let body = json!({"params": {"customer": 4891}, "reason": "…"});
        copy::request("POST", &self.path(), &body)
    }
}

/// Shows the form with what was written into it, and what is wrong with that.
async fn page<P: Permission>(
    visit: &Visit<P>,
    name: &str,
    mut form: TriggerForm,
    problems: Vec<String>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Jobs).await?;
    let job = job_names::find(visit.reads(), name).await;
    let mut job = job.map_err(|error| visit.refuse(error))?;
    mask_job(&mut job);
    form.key.get_or_insert_with(Uuid::new_v4);
    let has_problems = !problems.is_empty();
    let mut response = html(&TriggerPage { frame, job, form, problems, role: Role::Operator });
    if has_problems {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    Ok(response)
}

pub(super) async fn form(
    visit: Visit<Viewer>,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    page(&visit, &name, TriggerForm::default(), Vec::new()).await
}

pub(super) async fn run(
    visit: Visit<Operator>,
    Path(name): Path<String>,
    Form(form): Form<TriggerForm>,
) -> Result<Response, Refusal> {
    let store = visit.writes();
    let triggered = async {
        let written = Some(form.params.trim()).filter(|params| !params.is_empty());
        let params = written.map(|written| read_params(Some(written))).transpose()?;
        // The same form with other params runs something else.
        let key = form.key.map(|key| Uuid::new_v5(&key, form.params.trim().as_bytes()));
        let key = key.map(|key| format!("console-{key}"));
        let (params, reason) = (params.as_ref(), form.reason.as_deref());
        let request = TriggerRequest { job: &name, key: key.as_deref(), params, reason };
        trigger(&store, request, visit.actor()).await
    };
    match triggered.await {
        Ok(done) => {
            let what = if done.created { "run_again" } else { "sent_twice" };
            let path = format!("/executions/{}?done={what}", done.id);
            Ok(Redirect::to(&visit.url(&path)).into_response())
        }
        Err(error @ OperationError::Invalid(_)) => {
            page(&visit, &name, form, problems_of(error)).await
        }
        Err(error) => Err(visit.refuse(error)),
    }
}
