//! `/checks`: the checks of jobs that run elsewhere.

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use sexton_operations::checks;
use sexton_operations::paging::Page;
use sexton_store::checks::list::{CheckFilter, CheckStatus};

use crate::access::Viewer;
use crate::api::PageSize;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::{PageQuery, Pages};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Which checks to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ChecksQuery {
    contains: Option<String>,
    open: bool,
    limit: PageSize,
    cursor: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "monitors/checks.html")]
struct ChecksPage {
    frame: Frame,
    query: ChecksQuery,
    page: Page<CheckStatus>,
    pages: Pages,
}

impl ChecksPage {
    fn is_filtered(&self) -> bool {
        self.query.contains.is_some() || self.query.open || self.query.cursor.is_some()
    }

    fn state(&self, check: &CheckStatus) -> (String, &'static str) {
        state(&self.frame, check)
    }

    fn expected(&self, check: &CheckStatus) -> String {
        expected(&self.frame, check)
    }
}

/// The state, and its class in the style sheet.
pub(super) fn state(frame: &Frame, check: &CheckStatus) -> (String, &'static str) {
    match (&check.cause, check.is_paused, check.last_ping_at) {
        (Some(cause), _, _) => (frame.words(cause), "down"),
        (None, true, _) => ("paused".to_owned(), "paused"),
        (None, false, None) => ("no ping yet".to_owned(), "pending"),
        (None, false, Some(_)) => ("ok".to_owned(), "ok"),
    }
}

/// When its pings are expected.
pub(super) fn expected(frame: &Frame, check: &CheckStatus) -> String {
    match (&check.schedule, check.every_ms) {
        (Some(schedule), _) => format!("{} ({})", frame.cell(schedule), check.timezone),
        (None, every) => format!("every {}", frame.limit(every.unwrap_or_default())),
    }
}

pub(super) async fn list(
    visit: Visit<Viewer>,
    query: PageQuery<ChecksQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Monitors).await?;
    let ChecksQuery { contains, open, limit, cursor } = &query.values;
    let filter = CheckFilter { name: None, containing: contains.clone(), open: *open, after: None };
    let listed = checks::list(visit.reads(), filter, cursor.as_deref(), limit.get()).await;
    let page = listed.map_err(|error| visit.refuse(error))?;
    let pages = query.pages(page.next_cursor.as_ref());
    Ok(html(&ChecksPage { frame, query: query.values, page, pages }))
}
