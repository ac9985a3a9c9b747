//! `/jobs:trigger`: runs all jobs of a filter now, each with its own params, after a preview.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use serde_json::json;
use sexton_operations::error::OperationError;
use sexton_operations::jobs::trigger_jobs::{
    JobOutcome, JobTrigger, MAX_JOBS, SelectedJobs, select,
};
use uuid::Uuid;

use super::list::read_filter;
use crate::access::Operator;
use crate::api::jobs::JobStatus;
use crate::api::trigger_many::trigger_jobs_by;
use crate::pages::shell::copy;
use crate::pages::shell::form::Form;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::problems::Problems;
use crate::pages::shell::query::{PageQuery, address_of_pairs};
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
    /// Which jobs the preview had: the digest of their names.
    seen: Option<String>,
    /// The first job to try; those before it have their executions, or were refused.
    from: Option<String>,
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
    form: TriggerManyForm,
    rows: Vec<Row>,
    created: usize,
    known: usize,
    refused: usize,
    unknown: usize,
    not_tried: usize,
    /// The index of the row at which a repetition begins; `None`: nothing is left.
    rest: Option<usize>,
}

impl TriggerManyForm {
    /// The conditions, as fields of a form.
    fn conditions(&self) -> Vec<(&'static str, &str)> {
        let status = self.status.map(JobStatus::as_str);
        let contains = self.contains.as_deref().map(|text| ("contains", text));
        let labels = self.label.iter().map(|label| ("label", label.as_str()));
        contains.into_iter().chain(status.map(|word| ("status", word))).chain(labels).collect()
    }

    /// The fields that the form lacks. Without `seen` nobody has looked at the jobs; without a key a form that is sent twice runs the jobs twice.
    fn missing(&self) -> Problems {
        let mut problems = Problems::default();
        if self.key.is_none() {
            problems.push_of("key", "key is missing: write one, or take the new one of this page");
        }
        if self.seen.is_none() {
            problems.push("nobody has looked at the jobs: here they are");
        }
        problems
    }

    fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or(copy::REASON)
    }

    async fn select(&self, visit: &Visit<Operator>) -> Result<SelectedJobs, OperationError> {
        let filter = read_filter(self.contains.as_deref(), self.status, &self.label)?;
        select(visit.reads(), &filter).await
    }

    /// Triggers the jobs that were seen, from the first one that is left.
    async fn trigger(&self, visit: &Visit<Operator>) -> Result<Vec<JobTrigger>, OperationError> {
        let jobs = self.select(visit).await?;
        jobs.check(visit.reads(), self.seen.as_deref().unwrap_or_default())?;
        let mut names = jobs.names;
        let from = self.from.as_ref();
        let first = from.and_then(|from| names.iter().position(|name| name == from));
        names.drain(..first.unwrap_or_default());
        trigger_jobs_by(visit.allowed(), names, (self.key.clone(), self.reason.clone())).await
    }
}

impl TriggerManyPage {
    const fn max_jobs() -> usize {
        MAX_JOBS
    }

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

    /// The command of the first job.
    fn command(&self) -> String {
        let first = self.jobs.names.first().map_or("", String::as_str);
        command(first, &self.key, Some(self.form.reason()))
    }

    fn request(&self) -> String {
        let names: Vec<&str> = self.jobs.names.iter().map(String::as_str).collect();
        request(&names, &self.key, Some(self.form.reason()))
    }
}

impl TriggeredManyPage {
    fn key(&self) -> &str {
        self.form.key.as_deref().unwrap_or_default()
    }

    /// The jobs that are left to be tried, and those behind them.
    fn left(&self) -> Vec<&str> {
        let left = self.rest.and_then(|rest| self.rows.get(rest..)).unwrap_or_default();
        left.iter().map(|row| row.job.as_str()).collect()
    }

    fn first_left(&self) -> &str {
        self.left().first().copied().unwrap_or_default()
    }

    fn command(&self) -> String {
        command(self.first_left(), self.key(), self.form.reason.as_deref())
    }

    fn request(&self) -> String {
        request(&self.left(), self.key(), self.form.reason.as_deref())
    }

    /// The address of the same form with another key.
    fn again(&self) -> String {
        address_of_pairs(&self.frame.url("/jobs:trigger"), &self.form.conditions(), "", |_, _| true)
    }
}

/// The command of a job; those of the others differ in the name alone.
fn command(job: &str, key: &str, reason: Option<&str>) -> String {
    let mut words = vec!["jobs".to_owned(), "trigger".to_owned(), job.to_owned()];
    words.extend(copy::option("key", key));
    words.extend(reason.into_iter().flat_map(|reason| copy::option("reason", reason)));
    copy::command_of(&words)
}

fn request(jobs: &[&str], key: &str, reason: Option<&str>) -> String {
    let mut body = json!({"jobs": jobs, "key": key});
    if let Some(reason) = reason {
        body["reason"] = reason.into();
    }
    copy::request("POST", "/jobs:trigger", &body)
}

impl Row {
    fn of(JobTrigger { job, outcome }: JobTrigger) -> Self {
        let (execution, outcome) = match outcome {
            JobOutcome::Done(done) => {
                let outcome = match (done.created, done.waits) {
                    (false, _) => "known: the key has this execution already",
                    (true, true) => "triggered; it waits until the job is free",
                    (true, false) => "triggered",
                };
                (Some(done.id.get()), outcome.to_owned())
            }
            JobOutcome::Refused(error) => {
                (None, format!("refused: {}", Problem::from(error).detail))
            }
            JobOutcome::Unknown(error) => {
                (None, format!("unknown: {}", Problem::from(error).detail))
            }
            JobOutcome::NotTried => (None, "not tried".to_owned()),
        };
        Self { job, execution, outcome }
    }
}

fn draw_key() -> String {
    format!("console-{}", Uuid::new_v4())
}

async fn page(
    visit: &Visit<Operator>,
    form: TriggerManyForm,
    problems: Problems,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Jobs).await?;
    let jobs = form.select(visit).await.map_err(|error| visit.refuse(error))?;
    let key = form.key.clone().unwrap_or_else(draw_key);
    Ok(html(&TriggerManyPage { frame, form, jobs, key, problems }))
}

pub(super) async fn preview(
    visit: Visit<Operator>,
    query: PageQuery<TriggerManyForm>,
) -> Result<Response, Refusal> {
    if query.values.key.is_none() {
        // It stays in the address, so that a person who comes back to the form sends the same one.
        return Ok(Redirect::to(&query.with("key", &draw_key())).into_response());
    }
    page(&visit, query.values, Problems::default()).await
}

pub(super) async fn run(
    visit: Visit<Operator>,
    Form(form): Form<TriggerManyForm>,
) -> Result<Response, Refusal> {
    let missing = form.missing();
    if !missing.is_empty() {
        let answer = page(&visit, form, missing).await?;
        return Ok((StatusCode::BAD_REQUEST, answer).into_response());
    }
    // Read before, so that the answer needs no database that may be away by then.
    let frame = visit.frame(Section::Jobs).await?;
    let (status, error) = match form.trigger(&visit).await {
        Ok(done) => return Ok(show_done(frame, form, done)),
        Err(error @ OperationError::Invalid(_)) => (StatusCode::BAD_REQUEST, error),
        Err(error @ OperationError::Conflict(_)) => (StatusCode::CONFLICT, error),
        Err(error) => return Err(visit.refuse(error)),
    };
    let answer = page(&visit, form, Problems::from(error)).await?;
    Ok((status, answer).into_response())
}

fn count(done: &[JobTrigger], is: fn(&JobOutcome) -> bool) -> usize {
    done.iter().filter(|one| is(&one.outcome)).count()
}

fn show_done(frame: Frame, form: TriggerManyForm, done: Vec<JobTrigger>) -> Response {
    let created = count(&done, |one| matches!(one, JobOutcome::Done(done) if done.created));
    let known = count(&done, |one| matches!(one, JobOutcome::Done(done) if !done.created));
    let refused = count(&done, |one| matches!(one, JobOutcome::Refused(_)));
    let unknown = count(&done, |one| matches!(one, JobOutcome::Unknown(_)));
    let not_tried = count(&done, |one| matches!(one, JobOutcome::NotTried));
    let is_left =
        |one: &JobTrigger| matches!(one.outcome, JobOutcome::Unknown(_) | JobOutcome::NotTried);
    let rest = done.iter().position(is_left);
    let rows = done.into_iter().map(Row::of).collect();
    html(&TriggeredManyPage {
        frame,
        form,
        rows,
        created,
        known,
        refused,
        unknown,
        not_tried,
        rest,
    })
}
