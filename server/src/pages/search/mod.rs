//! `/search`: one field for jobs, ids and words of errors.

use askama::Template;
use axum::Router;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use serde::Deserialize;
use sexton_model::failures::Order;
use sexton_operations::error::{NotFound, OperationError};
use sexton_operations::execution_ids;
use sexton_operations::failed::list;
use sexton_operations::filter::{FailureScope, FilterRequest};
use sexton_operations::jobs::details::{self, ListedJob};
use sexton_operations::paging::Page;
use sexton_store::failures::FailedExecution;
use sexton_store::jobs::JobFilter;

use super::shell::frame::{Frame, Section, html};
use super::shell::query::PageQuery;
use super::shell::refusal::Refusal;
use super::shell::visit::{Site, Visit};
use crate::access::Viewer;

/// Rows of each kind.
const MAX_FOUND: i64 = 20;
/// Fewer digits begin too many ids.
const MIN_ID_DIGITS: usize = 8;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new().route("/search", get(search))
}

/// What to look for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SearchQuery {
    q: String,
}

#[derive(Debug, Template)]
#[template(path = "search/show.html")]
struct SearchPage {
    frame: Frame,
    text: String,
    jobs: Page<ListedJob>,
    failures: Page<FailedExecution>,
    /// Why nothing can be looked for among errors.
    problem: Option<String>,
}

/// Leads to an execution if the text is its id, or begins it; otherwise lists jobs and failures.
async fn search(visit: Visit<Viewer>, query: PageQuery<SearchQuery>) -> Result<Response, Refusal> {
    let text = query.values.q.trim().to_owned();
    let store = visit.reads();
    if is_like_id(&text) {
        match execution_ids::resolve(store, &text).await {
            Ok(id) => {
                let address = visit.url(&format!("/executions/{id}"));
                return Ok(Redirect::to(&address).into_response());
            }
            // A word may look like the beginning of an id.
            Err(OperationError::NotFound(NotFound::Execution(_)) | OperationError::Invalid(_)) => {}
            Err(error) => return Err(visit.refuse(error)),
        }
    }
    let frame = visit.frame(Section::Other).await?;
    if text.is_empty() {
        let (jobs, failures) = (
            Page { items: Vec::new(), next_cursor: None },
            Page { items: Vec::new(), next_cursor: None },
        );
        return Ok(html(&SearchPage { frame, text, jobs, failures, problem: None }));
    }
    let filter = JobFilter { containing: Some(text.clone()), ..JobFilter::default() };
    let jobs = details::list(store, filter, false, None, MAX_FOUND).await;
    let jobs = jobs.map_err(|error| visit.refuse(error))?;
    let request = FilterRequest { text: Some(text.clone()), ..FilterRequest::default() };
    let scope = FailureScope { discarded: false, muted: true };
    let found = async {
        let filter = request.read_failures(store, scope, frame.now).await?;
        list::page(store, &filter, Order::Newest, None, MAX_FOUND).await
    };
    let (failures, problem) = match found.await {
        Ok(failures) => (failures, None),
        Err(OperationError::Invalid(problem)) => {
            (Page { items: Vec::new(), next_cursor: None }, Some(problem.to_string()))
        }
        Err(error) => return Err(visit.refuse(error)),
    };
    Ok(html(&SearchPage { frame, text, jobs, failures, problem }))
}

fn is_like_id(text: &str) -> bool {
    text.len() >= MIN_ID_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
