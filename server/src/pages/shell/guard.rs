//! Limits of every page, and the headers by which a browser guards it.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY as CSP, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::refusal::Refusal;
use super::visit::Site;
use crate::problem::{Problem, ProblemCode};

/// Scripts and styles come from this server's own files alone, and none stands in a page: a text of a task that became markup would run
/// nothing. So no nonce is needed.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                                           form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Longest time of a page. Each statement behind it has a shorter one.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Pages that are made at the same time; others wait.
static TURNS: Semaphore = Semaphore::const_new(32);
const HEADERS: [(HeaderName, &str); 4] = [
    (CSP, CONTENT_SECURITY_POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    // Addresses name jobs and search for texts of errors.
    (REFERRER_POLICY, "same-origin"),
];

/// Limits the number of pages at the same time. Not of the log-in's: the slow forms of strangers would take all places.
pub(in crate::pages) async fn in_turn(request: Request, next: Next) -> Response {
    // It is never closed.
    let _turn = TURNS.acquire().await;
    next.run(request).await
}

/// Limits the time of a page, that of its turn included, and sets the headers.
pub(in crate::pages) async fn guarded(
    State(site): State<Site>,
    request: Request,
    next: Next,
) -> Response {
    let path = format!("{}{}", site.base, request.uri());
    let is_reading = request.method() == Method::GET;
    let answered = timeout(PAGE_TIMEOUT, next.run(request)).await;
    let mut response = answered.unwrap_or_else(|_| {
        let detail = "the page took more than 30 s; of an action, look first whether it was done";
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let problem = Problem::new(status, ProblemCode::TooSlow, detail);
        Refusal::new(problem, &site, path).of_reading(is_reading).into_response()
    });
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
