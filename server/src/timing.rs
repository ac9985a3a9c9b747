//! Measures how long answers take.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::USER_AGENT;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use sexton_service::metrics::table::HTTP_REQUEST_DURATION;
use tokio::time::Instant;

/// The label of a request without a route, or with a method that no route answers.
const OTHER: &str = "other";

/// Answers a request, and records how long that took, unless it comes from `probe`: the process's pings to itself say nothing about
/// clients.
pub(crate) async fn timed(State(probe): State<Arc<str>>, request: Request, next: Next) -> Response {
    if request.headers().get(USER_AGENT).is_some_and(|agent| agent == &*probe) {
        return next.run(request).await;
    }
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = method(request.method());
    let began = Instant::now();
    let response = next.run(request).await;
    let route = route.as_ref().map_or(OTHER, MatchedPath::as_str);
    HTTP_REQUEST_DURATION.observe([route, method, class(response.status())], began.elapsed());
    response
}

/// A client may send any word as its method.
const fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        _ => OTHER,
    }
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        ..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        500.. => "5xx",
    }
}
