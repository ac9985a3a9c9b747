//! Addresses at which there is nothing.

use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};

use super::shell::refusal::Refusal;
use super::shell::visit::Site;
use crate::problem::{Problem, ProblemCode};

/// Answers people with a page, and programs with a line.
pub(super) async fn show(
    State(site): State<Site>,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accepted.contains("text/html") {
        return (StatusCode::NOT_FOUND, "not found\n").into_response();
    }
    let detail = "There is no page at this address. A row that is older than its retention is gone; look for others by the search.";
    let problem = Problem::new(StatusCode::NOT_FOUND, ProblemCode::NotFound, detail);
    let path = format!("{}{uri}", site.base);
    Refusal::new(problem, &site, path).of_reading(method == Method::GET).into_response()
}
