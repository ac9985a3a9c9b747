//! `/bulks/{id}`: what a bulk does, how far it is, and what became of each of its executions.

use std::collections::HashMap;

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use sexton_model::access::Role;
use sexton_model::bulk_item::ItemState;
use sexton_operations::bulks::blocked_questions::describe_blocked;
use sexton_operations::bulks::control::{self, BulkDetails};
use sexton_operations::bulks::items;
use sexton_operations::bulks::watch::summary;
use sexton_operations::error::OperationError;
use sexton_operations::secrets::mask_bulk;
use sexton_operations::{job_names, short_ids};
use sexton_store::bulk::Bulk;
use uuid::Uuid;

use super::items::{ItemRow, Tab, tabs};
use super::words::{conditions, job, state_sentence, verb};
use crate::access::Viewer;
use crate::api::{PageSize, problem_of_parameter};
use crate::pages::shell::copy;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::{PageQuery, Pages};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Which items of the bulk to show.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct BulkQuery {
    /// Only in this state.
    state: Option<ItemState>,
    limit: PageSize,
    cursor: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "bulks/show.html")]
struct BulkPage<'a> {
    frame: Frame,
    details: &'a BulkDetails,
    bulk: &'a Bulk,
    role: Role,
    /// The name of the job, if it is about one.
    jobs: HashMap<Uuid, String>,
    query: BulkQuery,
    items: Vec<ItemRow>,
    pages: Pages,
    /// The page looked at as many items as it may, and may miss some that the next one finds.
    is_cut_short: bool,
}

impl BulkPage<'_> {
    fn verb(&self) -> &'static str {
        verb(&self.bulk.kind)
    }

    fn sentence(&self) -> String {
        state_sentence(self.bulk)
    }

    fn conditions(&self) -> Vec<String> {
        conditions(&self.bulk.selector, &self.jobs)
    }

    fn summary(&self) -> String {
        summary(self.bulk)
    }

    fn ended(&self) -> i64 {
        self.bulk.selected - self.bulk.remaining()
    }

    /// For a progress bar, whose end must be more than nothing.
    fn most(&self) -> i64 {
        self.bulk.selected.max(1)
    }

    fn blocked(&self) -> Option<String> {
        self.details.waits.as_ref().map(describe_blocked)
    }

    fn verifier(&self) -> Option<&'static str> {
        Some(match self.bulk.verify.as_deref()? {
            "task" => "by the verify tasks of the jobs",
            "command" => "by a command of the operator, `sexton bulks verify`",
            _ => "not, although jobs have verify tasks",
        })
    }

    /// Whether the page begins with the executions that the bulk did not act on: it is the first one, of all items.
    fn shows_refused(&self) -> bool {
        let is_first = self.query.state.is_none() && self.query.cursor.is_none();
        is_first && !self.details.refused.is_empty()
    }

    fn tabs(&self) -> Vec<Tab> {
        tabs(self.bulk, self.query.state)
    }

    fn may_stop(&self) -> bool {
        matches!(self.bulk.state.as_str(), "preparing" | "running" | "paused")
    }

    fn may_resume(&self) -> bool {
        matches!(self.bulk.state.as_str(), "paused" | "stopped")
    }

    fn action(&self, action: &str) -> String {
        format!("/bulks/{}/{action}", self.bulk.id)
    }

    fn command(&self, action: &str) -> String {
        copy::command(&["bulks", action, &self.bulk.id.to_string()])
    }

    fn request(&self, action: &str) -> String {
        copy::request("POST", &self.action(action), &Value::Null)
    }
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    Path(id): Path<String>,
    query: PageQuery<BulkQuery>,
) -> Result<Response, Refusal> {
    let is_no_number = |_| visit.refuse(problem_of_parameter("id", "is no number of a bulk"));
    let (store, id) = (visit.reads(), id.parse::<i64>().map_err(is_no_number)?);
    let BulkQuery { state, limit, cursor } = &query.values;
    let reading = async {
        let details = control::show(store, id).await?;
        let jobs = job_names::list(store, job(&details.bulk.selector)).await?;
        let found = items::list(store, id, *state, cursor.as_deref(), limit.get()).await?;
        let ids: Vec<Uuid> = found.page.items.iter().map(|item| item.execution_id).collect();
        let ids = short_ids::of_executions(store, ids).await?;
        Ok((details, jobs, found, ids))
    };
    let read: Result<_, OperationError> = reading.await;
    let (mut details, jobs, found, ids) = read.map_err(|error| visit.refuse(error))?;
    mask_bulk(&mut details.bulk);
    let frame = visit.frame(Section::Bulks).await?;
    let pages = query.pages(found.page.next_cursor.as_ref());
    let row = |item| ItemRow::new(item, &ids);
    Ok(html(&BulkPage {
        frame,
        details: &details,
        bulk: &details.bulk,
        role: Role::Operator,
        jobs,
        query: query.values,
        items: found.page.items.into_iter().map(row).collect(),
        pages,
        is_cut_short: found.is_cut_short,
    }))
}
