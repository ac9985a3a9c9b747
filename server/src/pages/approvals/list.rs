//! `/approvals`: the list, and the rules.

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use sexton_operations::approvals::requests::{self, describe};
use sexton_operations::approvals::rules::{self, ApprovalRule};
use sexton_operations::error::OperationError;
use sexton_operations::paging::Page;
use sexton_store::approvals::ApprovalRequest;

use crate::access::Viewer;
use crate::api::PageSize;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::{PageQuery, Pages};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Which page of requests to show.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ApprovalsQuery {
    /// Also requests that have ended or expired.
    all: bool,
    limit: PageSize,
    cursor: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "approvals/list.html")]
struct ApprovalsPage {
    frame: Frame,
    page: Page<ApprovalRequest>,
    pages: Pages,
    all: bool,
    rules: Vec<ApprovalRule>,
}

impl ApprovalsPage {
    fn what(&self, request: &ApprovalRequest) -> String {
        self.frame.cell(&describe(request))
    }

    fn jobs(&self, rule: &ApprovalRule) -> String {
        match (&rule.label, &rule.label_value) {
            (Some(label), Some(value)) => self.frame.cell(&format!("with {label}={value}")),
            _ => "all".to_owned(),
        }
    }
}

pub(super) async fn list(
    visit: Visit<Viewer>,
    query: PageQuery<ApprovalsQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Approvals).await?;
    let ApprovalsQuery { all, limit, cursor } = &query.values;
    let (store, all) = (visit.reads(), *all);
    let reading = async {
        let page = requests::list(store, all, cursor.as_deref(), limit.get()).await?;
        Ok((page, rules::list(store).await?))
    };
    let read: Result<_, OperationError> = reading.await;
    let (page, rules) = read.map_err(|error| visit.refuse(error))?;
    let pages = query.pages(page.next_cursor.as_ref());
    Ok(html(&ApprovalsPage { frame, page, pages, all, rules }))
}
