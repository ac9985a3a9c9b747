//! `/jobs/{name}/trigger`: runs a job now, with other params if wanted.

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use sexton_model::access::Role;
use sexton_operations::error::OperationError;
use sexton_operations::job_names;
use sexton_operations::jobs::trigger::{TriggerRequest, read_params, trigger};
use sexton_operations::secrets::mask_job;
use sexton_store::jobs::Job;
use uuid::Uuid;

use crate::access::{Operator, Permission, Viewer};
use crate::pages::shell::copy;
use crate::pages::shell::form::Form;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::problems::Problems;
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
    /// Only show the command and the request.
    as_command: bool,
}

impl TriggerForm {
    /// The params that were written; `None`: those of the job.
    fn written(&self) -> Option<&str> {
        Some(self.params.trim()).filter(|params| !params.is_empty())
    }

    fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or(copy::REASON)
    }
}

#[derive(Debug, Template)]
#[template(path = "jobs/trigger.html")]
struct TriggerPage {
    frame: Frame,
    job: Job,
    form: TriggerForm,
    problems: Problems,
    role: Role,
}

impl TriggerPage {
    fn path(&self) -> String {
        format!("/jobs/{}/trigger", self.job.name)
    }

    fn command(&self) -> String {
        let mut words = vec!["jobs".to_owned(), "trigger".to_owned(), self.job.name.clone()];
        if let Some(params) = self.form.written() {
            words.extend(copy::option("params", params));
        }
        words.extend(copy::option("reason", self.form.reason()));
        copy::command_of(&words)
    }

    fn request(&self) -> String {
        let mut body = json!({"reason": self.form.reason()});
        if let Some(params) = self.form.written() {
            // What the page refuses stays a text, which the API refuses as well.
            body["params"] =
                read_params(Some(params)).map_or_else(|_| Value::from(params), Value::Object);
        }
        copy::request("POST", &self.path(), &body)
    }
}

/// Shows the form with what was written into it, and what is wrong with that.
async fn page<P: Permission>(
    visit: &Visit<P>,
    name: &str,
    mut form: TriggerForm,
    problems: Problems,
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
    page(&visit, &name, TriggerForm::default(), Problems::default()).await
}

pub(super) async fn run(
    visit: Visit<Operator>,
    Path(name): Path<String>,
    Form(form): Form<TriggerForm>,
) -> Result<Response, Refusal> {
    if form.as_command {
        return page(&visit, &name, form, Problems::default()).await;
    }
    let store = visit.writes();
    let triggered = async {
        let params = form.written().map(|written| read_params(Some(written))).transpose()?;
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
            page(&visit, &name, form, Problems::from(error)).await
        }
        Err(error) => Err(visit.refuse(error)),
    }
}
