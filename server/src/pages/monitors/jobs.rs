//! `/monitors`: the monitors of the platform's jobs.

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use sexton_operations::monitors;
use sexton_operations::paging::Page;
use sexton_store::monitors::{MonitorFilter, MonitorStatus};

use crate::access::Viewer;
use crate::api::PageSize;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::{PageQuery, Pages};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Which monitors to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MonitorsQuery {
    contains: Option<String>,
    open: bool,
    limited: bool,
    limit: PageSize,
    cursor: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "monitors/jobs.html")]
struct MonitorsPage {
    frame: Frame,
    query: MonitorsQuery,
    page: Page<MonitorStatus>,
    pages: Pages,
}

impl MonitorsPage {
    fn is_filtered(&self) -> bool {
        let MonitorsQuery { contains, open, limited, cursor, .. } = &self.query;
        contains.is_some() || *open || *limited || cursor.is_some()
    }

    /// The state, and its class in the style sheet.
    fn state(&self, monitor: &MonitorStatus) -> (String, &'static str) {
        match (&monitor.cause, monitor.status.as_str()) {
            (Some(cause), _) => (self.frame.words(cause), "down"),
            (None, "paused") => ("paused".to_owned(), "paused"),
            (None, _) => ("ok".to_owned(), "ok"),
        }
    }

    fn limits(&self, monitor: &MonitorStatus) -> String {
        let limits = [
            ("begins within", monitor.start_within_ms),
            ("succeeds within", monitor.expect_within_ms),
            ("runs at most", monitor.max_runtime_ms),
        ];
        let limits = limits.into_iter().filter_map(|(what, ms)| Some((what, ms?)));
        let limits = limits.map(|(what, ms)| format!("{what} {}", self.frame.limit(ms)));
        limits.collect::<Vec<_>>().join(", ")
    }
}

pub(super) async fn list(
    visit: Visit<Viewer>,
    query: PageQuery<MonitorsQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Monitors).await?;
    let MonitorsQuery { contains, open, limited, limit, cursor } = &query.values;
    let filter =
        MonitorFilter { containing: contains.clone(), open: *open, limited: *limited, after: None };
    let listed = monitors::list(visit.reads(), filter, cursor.as_deref(), limit.get()).await;
    let page = listed.map_err(|error| visit.refuse(error))?;
    let pages = query.pages(page.next_cursor.as_ref());
    Ok(html(&MonitorsPage { frame, query: query.values, page, pages }))
}
