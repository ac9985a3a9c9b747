//! `/jobs`: jobs by name.

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use sexton_model::access::Role;
use sexton_operations::jobs::details::{self, ListedJob};
use sexton_operations::paging::Page;
use sexton_store::jobs::{Job, JobFilter};

use super::schedule::ScheduleWords;
use crate::access::Viewer;
use crate::api::PageSize;
use crate::api::jobs::JobStatus;
use crate::pages::shell::copy;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Which jobs to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct JobsQuery {
    /// Only those whose name contains this.
    contains: Option<String>,
    /// Only active or only paused ones.
    status: Option<JobStatus>,
    /// Deleted ones instead.
    deleted: bool,
    limit: PageSize,
    cursor: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "jobs/list.html")]
struct JobsPage {
    frame: Frame,
    query: JobsQuery,
    page: Page<ListedJob>,
    next: Option<String>,
    role: Role,
}

impl JobsPage {
    fn is_filtered(&self) -> bool {
        self.query.contains.is_some() || self.query.status.is_some()
    }

    fn is_active_only(&self) -> bool {
        self.query.status == Some(JobStatus::Active)
    }

    fn is_paused_only(&self) -> bool {
        self.query.status == Some(JobStatus::Paused)
    }

    fn schedule(job: &Job) -> ScheduleWords {
        ScheduleWords::of(job)
    }

    fn action(job: &Job, action: &str) -> String {
        format!("/jobs/{}/{action}", job.name)
    }

    fn pause_command(job: &Job) -> String {
        copy::command(&["jobs", "pause", &job.name, "--reason", "…"])
    }

    fn resume_command(job: &Job) -> String {
        copy::command(&["jobs", "resume", &job.name])
    }

    fn request(job: &Job, action: &str) -> String {
        copy::request("POST", &Self::action(job, action), &json!({"reason": "…"}))
    }

    fn reason_id(job: &Job) -> String {
        format!("reason-{}", job.id)
    }
}

pub(super) async fn list(
    visit: Visit<Viewer>,
    query: PageQuery<JobsQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Jobs).await?;
    let JobsQuery { contains, status, deleted, limit, cursor } = &query.values;
    let status = status.map(|status| match status {
        JobStatus::Active => "active".to_owned(),
        JobStatus::Paused => "paused".to_owned(),
    });
    let filter = JobFilter { names: None, containing: contains.clone(), status, after: None };
    let cursor = cursor.as_deref();
    let page = details::list(visit.reads(), filter, *deleted, cursor, limit.get()).await;
    let page = page.map_err(|error| visit.refuse(error))?;
    let next = query.next(page.next_cursor.as_ref());
    Ok(html(&JobsPage { frame, query: query.values, page, next, role: Role::Operator }))
}
