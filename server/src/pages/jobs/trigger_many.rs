//! `/jobs:trigger`: runs all jobs of a filter now, each with its own params, after a preview.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use sexton_operations::error::OperationError;
use sexton_operations::jobs::trigger_jobs::{
    JobTrigger, MAX_JOBS, SelectedJobs, select, trigger_all,
};
use uuid::Uuid;

use super::list::read_filter;
use crate::access::Operator;
use crate::api::jobs::JobStatus;
use crate::pages::shell::copy;
use crate::pages::shell::form::Form;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::problems::Problems;
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;
use crate::problem::Problem;

/// Jobs that a preview names.
const MAX_NAMED: usize = 50;

/// Which jobs to trigger, and how.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TriggerManyForm {
    /// Only those whose name contains this.
    contains: Option<String>,
    /// Only active or only paused ones.
    status: Option<JobStatus>,
    /// Only those with this label. May be repeated.
    label: Vec<String>,
    /// How many the preview had.
    count: Option<usize>,
    /// The key of each execution: what is sent twice with one key runs once.
    key: Option<String>,
    #[serde(deserialize_with = "crate::api::reason")]
    reason: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "jobs/trigger_many.html")]
struct TriggerManyPage {
    frame: Frame,
    form: TriggerManyForm,
    jobs: SelectedJobs,
    /// The key that was written, or one that was drawn with the page.
    key: String,
    problems: Problems,
}

/// What became of a job.
#[derive(Debug)]
struct Row {
    job: String,
    execution: Option<Uuid>,
    /// In a few words, or why it was refused.
    outcome: String,
}

#[derive(Debug, Template)]
#[template(path = "jobs/triggered_many.html")]
struct TriggeredManyPage {
    frame: Frame,
    rows: Vec<Row>,
    created: usize,
    refused: usize,
}

impl TriggerManyForm {
    /// The conditions, as fields of a form.
    fn conditions(&self) -> Vec<(&'static str, &str)> {
        let status = self.status.map(|status| match status {
            JobStatus::Active => "active",
            JobStatus::Paused => "paused",
        });
        let contains = self.contains.as_deref().map(|text| ("contains", text));
        let labels = self.label.iter().map(|label| ("label", label.as_str()));
        contains.into_iter().chain(status.map(|word| ("status", word))).chain(labels).collect()
    }

    fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or(copy::REASON)
    }

    async fn select(&self, visit: &Visit<Operator>) -> Result<SelectedJobs, OperationError> {
        let filter = read_filter(self.contains.as_deref(), self.status, &self.label)?;
        select(visit.reads(), &filter).await
    }
}

impl TriggerManyPage {
    fn title(&self) -> String {
        let more = if self.jobs.more { "more than " } else { "" };
        let count = if self.jobs.more { MAX_JOBS } else { self.jobs.names.len() };
        format!("Trigger {more}{count} {}", if count == 1 { "job" } else { "jobs" })
    }

    fn named(&self) -> &[String] {
        &self.jobs.names[..self.jobs.names.len().min(MAX_NAMED)]
    }

    fn more_names(&self) -> usize {
        self.jobs.names.len() - self.named().len()
    }

    /// The command of the first job; those of the others differ in the name alone.
    fn command(&self) -> String {
        let first = self.jobs.names.first().map_or("", String::as_str);
        let mut words = vec!["jobs".to_owned(), "trigger".to_owned(), first.to_owned()];
        words.extend(copy::option("key", &self.key));
        words.extend(copy::option("reason", self.form.reason()));
        copy::command_of(&words)
    }

    fn request(&self) -> String {
        let body = json!({"jobs": self.jobs.names, "key": self.key, "reason": self.form.reason()});
        copy::request("POST", "/jobs:trigger", &body)
    }
}

impl Row {
    fn of(JobTrigger { job, result }: JobTrigger) -> Self {
        match result {
            Ok(done) => {
                let outcome = match (done.created, done.waits) {
                    (false, _) => "known: the key has this execution already",
                    (true, true) => "triggered; it waits until the job is free",
                    (true, false) => "triggered",
                };
                Self { job, execution: Some(done.id.get()), outcome: outcome.to_owned() }
            }
            Err(error) => {
                let outcome = format!("refused: {}", Problem::from(error).detail);
                Self { job, execution: None, outcome }
            }
        }
    }
}

async fn page(
    visit: &Visit<Operator>,
    form: TriggerManyForm,
    problems: Problems,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Jobs).await?;
    let jobs = form.select(visit).await.map_err(|error| visit.refuse(error))?;
    let key = form.key.clone().unwrap_or_else(|| format!("console-{}", Uuid::new_v4()));
    let has_problems = !problems.is_empty();
    let mut response = html(&TriggerManyPage { frame, form, jobs, key, problems });
    if has_problems {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    Ok(response)
}

pub(super) async fn preview(
    visit: Visit<Operator>,
    query: PageQuery<TriggerManyForm>,
) -> Result<Response, Refusal> {
    page(&visit, query.values, Problems::default()).await
}

pub(super) async fn run(
    visit: Visit<Operator>,
    Form(form): Form<TriggerManyForm>,
) -> Result<Response, Refusal> {
    // Without both, nobody has seen a preview, and what is sent twice would run twice.
    let (Some(seen), Some(key)) = (form.count, form.key.as_deref()) else {
        return page(&visit, form, Problems::default()).await;
    };
    let triggered = async {
        let jobs = form.select(&visit).await?;
        jobs.check(seen)?;
        let options = (Some(key), form.reason.as_deref());
        trigger_all(&visit.writes(), jobs.names, options, visit.actor()).await
    };
    let done = match triggered.await {
        Ok(done) => done,
        Err(error @ OperationError::Invalid(_)) => {
            return page(&visit, form, Problems::from(error)).await;
        }
        Err(error) => return Err(visit.refuse(error)),
    };
    show_done(&visit, done).await
}

async fn show_done(
    visit: &Visit<Operator>,
    mut done: Vec<JobTrigger>,
) -> Result<Response, Refusal> {
    let is_of_others = |one: &JobTrigger| matches!(one.result, Err(OperationError::OutOfScope(_)));
    if done.iter().all(is_of_others)
        && let Some(JobTrigger { result: Err(error), .. }) = done.pop()
    {
        return Err(visit.refuse(error));
    }
    let frame = visit.frame(Section::Jobs).await?;
    let created = done.iter().filter(|one| one.result.as_ref().is_ok_and(|done| done.created));
    let created = created.count();
    let refused = done.iter().filter(|one| one.result.is_err()).count();
    let rows = done.into_iter().map(Row::of).collect();
    Ok(html(&TriggeredManyPage { frame, rows, created, refused }))
}
