//! `/flows`: the list.

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use sexton_operations::flows;
use sexton_operations::paging::Page;
use sexton_store::flows::Flow;

use crate::access::Viewer;
use crate::api::PageSize;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::{PageQuery, Pages};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Which flows to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FlowsQuery {
    /// Only those of this name.
    name: Option<String>,
    /// Only those that have not ended.
    open: bool,
    limit: PageSize,
    cursor: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "flows/list.html")]
struct FlowsPage {
    frame: Frame,
    query: FlowsQuery,
    page: Page<Flow>,
    pages: Pages,
}

impl FlowsPage {
    fn is_filtered(&self) -> bool {
        self.query.name.is_some() || self.query.open || self.query.cursor.is_some()
    }

    fn state(&self, flow: &Flow) -> &'static str {
        state(flow)
    }
}

/// The state of a flow, as a word.
pub(super) fn state(flow: &Flow) -> &'static str {
    match (flow.ended_at, flow.failed) {
        (Some(_), _) => "ended",
        (None, 0) if flow.problem.is_some() => "incomplete",
        (None, 0) => "running",
        (None, _) => "blocked",
    }
}

pub(super) async fn list(
    visit: Visit<Viewer>,
    query: PageQuery<FlowsQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Other).await?;
    let FlowsQuery { name, open, limit, cursor } = &query.values;
    let listed =
        flows::list(visit.reads(), name.clone(), *open, cursor.as_deref(), limit.get()).await;
    let page = listed.map_err(|error| visit.refuse(error))?;
    let pages = query.pages(page.next_cursor.as_ref());
    Ok(html(&FlowsPage { frame, query: query.values, page, pages }))
}
