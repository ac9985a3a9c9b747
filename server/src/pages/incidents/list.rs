//! `/incidents`: the list.

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use sexton_model::incident::{Severity, SubjectKind};
use sexton_operations::incidents;
use sexton_operations::paging::Page;
use sexton_store::incidents::{Incident, IncidentFilter};

use crate::access::Viewer;
use crate::api::PageSize;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::{PageQuery, Pages};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Which incidents to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct IncidentsQuery {
    /// Also resolved incidents.
    all: bool,
    severity: Option<Severity>,
    kind: Option<SubjectKind>,
    contains: Option<String>,
    limit: PageSize,
    cursor: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "incidents/list.html")]
struct IncidentsPage {
    frame: Frame,
    query: IncidentsQuery,
    page: Page<Incident>,
    pages: Pages,
}

impl IncidentsPage {
    fn is_filtered(&self) -> bool {
        let IncidentsQuery { severity, kind, contains, cursor, .. } = &self.query;
        severity.is_some() || kind.is_some() || contains.is_some() || cursor.is_some()
    }

    fn severities(&self) -> [Severity; 3] {
        Severity::ALL
    }

    fn kinds(&self) -> [SubjectKind; 5] {
        SubjectKind::ALL
    }

    fn is_silenced(&self, incident: &Incident) -> bool {
        incident.silenced_until.is_some_and(|until| until > self.frame.now)
    }
}

pub(super) async fn list(
    visit: Visit<Viewer>,
    query: PageQuery<IncidentsQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Incidents).await?;
    let IncidentsQuery { all, severity, kind, contains, limit, cursor } = &query.values;
    let filter = IncidentFilter {
        with_resolved: *all,
        severity: *severity,
        subject_kind: *kind,
        containing: contains.clone(),
        before: None,
    };
    let listed = incidents::list(visit.reads(), filter, cursor.as_deref(), limit.get()).await;
    let page = listed.map_err(|error| visit.refuse(error))?;
    let pages = query.pages(page.next_cursor.as_ref());
    Ok(html(&IncidentsPage { frame, query: query.values, page, pages }))
}
