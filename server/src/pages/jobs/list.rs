//! `/jobs`: jobs by name, and what their latest executions say.

use std::collections::HashMap;

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use sexton_model::access::Role;
use sexton_model::duration::to_millis;
use sexton_operations::error::OperationError;
use sexton_operations::filter::read_labels;
use sexton_operations::jobs::activity::{self, JobActivity, MAX_COUNTED_FAILURES};
use sexton_operations::jobs::details::{self, ListedJob};
use sexton_operations::paging::Page;
use sexton_operations::text;
use sexton_store::jobs::{Job, JobFilter};
use url::form_urlencoded::byte_serialize;
use uuid::Uuid;

use super::recent::RecentStrip;
use super::schedule::ScheduleWords;
use crate::access::Viewer;
use crate::api::PageSize;
use crate::api::jobs::JobStatus;
use crate::pages::shell::copy;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::{PageQuery, Pages, address_of_pairs};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Jobs of a page at most, whatever it is requested with: each costs reads of its latest executions.
const MAX_ROWS: i64 = 100;
/// Labels of a job that its row shows.
const MAX_LABELS: usize = 5;

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
    /// Only those with this label, such as `team=billing`. May be repeated.
    label: Vec<String>,
    limit: PageSize,
    cursor: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "jobs/list.html")]
struct JobsPage {
    frame: Frame,
    query: JobsQuery,
    page: Page<ListedJob>,
    activities: HashMap<Uuid, JobActivity>,
    pages: Pages,
    role: Role,
    /// The address at which all that match can be triggered.
    trigger_all: String,
}

/// Reads the conditions of a list of jobs.
pub(super) fn read_filter(
    contains: Option<&str>,
    status: Option<JobStatus>,
    labels: &[String],
) -> Result<JobFilter, OperationError> {
    let status = status.map(|status| status.as_str().to_owned());
    let (containing, labels) = (contains.map(str::to_owned), read_labels(labels)?);
    Ok(JobFilter { containing, status, labels, ..JobFilter::default() })
}

/// Returns the address of the preview that triggers all that match the query of an address.
fn trigger_all(query: &str) -> String {
    let is_kept = |name: &str, _: &str| !matches!(name, "cursor" | "limit" | "deleted");
    address_of_pairs("/jobs:trigger", &[], query, is_kept)
}

impl JobsPage {
    fn is_filtered(&self) -> bool {
        let JobsQuery { contains, status, label, .. } = &self.query;
        contains.is_some() || status.is_some() || !label.is_empty()
    }

    fn label(&self) -> &str {
        self.query.label.first().map_or("", String::as_str)
    }

    /// The labels that have no field of the form.
    fn more_labels(&self) -> &[String] {
        self.query.label.get(1..).unwrap_or_default()
    }

    /// The labels of a job, each as in `team=billing`, with the address of the jobs that have it.
    fn labels(&self, job: &Job) -> Vec<(String, String)> {
        let labels = job.labels.as_object().into_iter().flatten().take(MAX_LABELS);
        let link = |(name, value): (&String, &Value)| {
            let text = format!("{name}={}", value.as_str().unwrap_or_default());
            let encoded: String = byte_serialize(text.as_bytes()).collect();
            let deleted = if self.query.deleted { "&deleted=true" } else { "" };
            let url = self.frame.url(format!("/jobs?label={encoded}{deleted}"));
            (text, url)
        };
        labels.map(link).collect()
    }

    fn labels_left_out(job: &Job) -> usize {
        job.labels.as_object().map_or(0, |labels| labels.len().saturating_sub(MAX_LABELS))
    }

    /// The strip of its last executions; `None`: it has none.
    fn recent(&self, job: &Job) -> Option<RecentStrip<'_>> {
        let activity = self.activities.get(&job.id)?;
        (!activity.states.is_empty()).then_some(RecentStrip { states: &activity.states })
    }

    fn p95(&self, job: &Job) -> Option<String> {
        let times = self.activities.get(&job.id)?.run_times?;
        Some(text::duration(to_millis(times.p95)))
    }

    /// How many of its executions are failed; `None`: no one is.
    fn failed(&self, job: &Job) -> Option<String> {
        match self.activities.get(&job.id)?.failed {
            0 => None,
            MAX_COUNTED_FAILURES.. => Some(format!("{MAX_COUNTED_FAILURES}+")),
            count => Some(count.to_string()),
        }
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
        copy::command(&["jobs", "pause", &job.name, "--reason", copy::REASON])
    }

    fn resume_command(job: &Job) -> String {
        copy::command(&["jobs", "resume", &job.name])
    }

    fn request(job: &Job, action: &str) -> String {
        copy::request("POST", &Self::action(job, action), &json!({"reason": copy::REASON}))
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
    let JobsQuery { contains, status, deleted, label, limit, cursor } = &query.values;
    let filter = read_filter(contains.as_deref(), *status, label);
    let filter = filter.map_err(|error| visit.refuse(error))?;
    let cursor = cursor.as_deref();
    let listed = async {
        let limit = limit.get().min(MAX_ROWS);
        let page = details::list(visit.reads(), filter, *deleted, cursor, limit).await?;
        let ids: Vec<Uuid> = page.items.iter().map(|row| row.job.id).collect();
        let activities = activity::read(visit.reads(), &ids).await?;
        Ok::<_, OperationError>((page, activities))
    };
    let (page, activities) = listed.await.map_err(|error| visit.refuse(error))?;
    let pages = query.pages(page.next_cursor.as_ref());
    let trigger_all = trigger_all(query.text());
    let (query, role) = (query.values, Role::Operator);
    Ok(html(&JobsPage { frame, query, page, activities, pages, role, trigger_all }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_of_all_that_match_keeps_the_filter_alone() {
        let query = "contains=a&cursor=x&limit=5&deleted=false&label=team%3Db&label=stage%3Dlive";
        let expected = "/jobs:trigger?contains=a&label=team%3Db&label=stage%3Dlive";
        assert_eq!(trigger_all(query), expected);
        let escaped = "%6Cimit=5&%64eleted=true&cont%61ins=a%26b";
        assert_eq!(trigger_all(escaped), "/jobs:trigger?contains=a%26b");
        assert_eq!(trigger_all(""), "/jobs:trigger");
        assert_eq!(trigger_all("limit=5"), "/jobs:trigger");
    }
}
