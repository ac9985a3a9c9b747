//! The list of actions.

use std::collections::HashMap;

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use sexton_operations::audit::{self, AuditRequest};
use sexton_operations::error::OperationError;
use sexton_operations::instants::TimeRangeRequest;
use sexton_operations::job_names;
use sexton_operations::paging::Page;
use sexton_store::operator::OperatorAction;
use uuid::Uuid;

use crate::access::Viewer;
use crate::api::PageSize;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::{PageQuery, Pages};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Which actions to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AuditQuery {
    actor: Option<String>,
    action: Option<String>,
    job: Option<String>,
    execution: Option<String>,
    bulk: Option<i64>,
    since: Option<String>,
    until: Option<String>,
    limit: PageSize,
    cursor: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "audit/list.html")]
struct AuditPage {
    frame: Frame,
    query: AuditQuery,
    page: Page<OperatorAction>,
    pages: Pages,
    /// The names of the jobs.
    jobs: HashMap<Uuid, String>,
}

impl AuditPage {
    fn is_filtered(&self) -> bool {
        let AuditQuery { actor, action, job, execution, bulk, since, until, cursor, .. } =
            &self.query;
        let texts = [actor, action, job, execution, since, until, cursor];
        bulk.is_some() || texts.iter().any(|text| text.is_some())
    }

    fn bulk(&self) -> String {
        self.query.bulk.map(|bulk| bulk.to_string()).unwrap_or_default()
    }

    fn job(&self, action: &OperatorAction) -> Option<&str> {
        self.jobs.get(&action.job_id?).map(String::as_str)
    }

    /// From where: what the program said, and what the database saw.
    fn place(&self, action: &OperatorAction) -> String {
        let places = [&action.from_where, &action.from_address];
        let places = places.into_iter().flatten().map(|place| self.frame.cell(place));
        places.collect::<Vec<_>>().join(" · ")
    }
}

pub(super) async fn list(
    visit: Visit<Viewer>,
    query: PageQuery<AuditQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Audit).await?;
    let store = visit.reads();
    let AuditQuery { actor, action, job, execution, bulk, since, until, limit, cursor } =
        &query.values;
    let request = AuditRequest {
        actor: actor.as_deref(),
        action: action.as_deref(),
        job: job.as_deref(),
        execution: execution.as_deref(),
        bulk: *bulk,
        range: TimeRangeRequest { since: since.as_deref(), until: until.as_deref() },
    };
    let reading = async {
        let filter = request.read(store, frame.now).await?;
        let page = audit::page(store, &filter, cursor.as_deref(), limit.get(), false).await?;
        let jobs = page.items.iter().filter_map(|action| action.job_id);
        let jobs = job_names::list(store, jobs).await?;
        Ok((page, jobs))
    };
    let read: Result<_, OperationError> = reading.await;
    let (page, jobs) = read.map_err(|error| visit.refuse(error))?;
    let pages = query.pages(page.next_cursor.as_ref());
    Ok(html(&AuditPage { frame, query: query.values, page, pages, jobs }))
}
