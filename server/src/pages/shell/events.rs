//! `/events`: the stream by which open pages learn that something has changed.

use axum::response::Response;
use serde::Deserialize;

use super::query::PageQuery;
use super::refusal::Refusal;
use super::visit::Visit;
use crate::access::Viewer;
use crate::api::problem_of_parameter;
use crate::events::{self, parse_topics};

/// What to listen to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::pages) struct EventsQuery {
    topics: String,
}

pub(in crate::pages) async fn follow(
    visit: Visit<Viewer>,
    query: PageQuery<EventsQuery>,
) -> Result<Response, Refusal> {
    let refuse = |problem: String| visit.refuse(problem_of_parameter("topics", &problem));
    let topics = parse_topics(&query.values.topics).map_err(refuse)?;
    Ok(events::follow(visit.listen(topics)))
}
