//! Refusals and failures, as pages.

use std::sync::Arc;

use askama::Template;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use url::form_urlencoded::byte_serialize;

use super::frame::{Frame, Section, html};
use super::visit::Site;
use crate::access::Caller;
use crate::problem::{Problem, ProblemCode};

/// When the page comes again by itself if the database is away, in seconds.
const RETRY_SECONDS: u16 = 5;

/// A page that says why another one cannot be shown, or something was not done.
#[derive(Debug)]
pub(in crate::pages) struct Refusal(Box<RefusalPage>);

#[derive(Debug, Template)]
#[template(path = "refusal.html")]
struct RefusalPage {
    frame: Frame,
    problem: Problem,
    leads_to_log_in: bool,
}

impl RefusalPage {
    fn is_temporary(&self) -> bool {
        matches!(self.problem.code, ProblemCode::Unavailable | ProblemCode::TooSlow)
    }
}

impl Refusal {
    pub(in crate::pages) fn new(problem: Problem, site: &Site, path: String) -> Self {
        let frame = Frame {
            base: Arc::clone(&site.base),
            caller: None,
            section: Section::Other,
            // No page of a refusal shows a time.
            now: chrono::DateTime::UNIX_EPOCH,
            path,
        };
        Self(Box::new(RefusalPage { frame, problem, leads_to_log_in: false }))
    }

    /// Leads people whom nobody knows to the log-in, and from there back.
    pub(in crate::pages) fn or_log_in(mut self) -> Self {
        self.0.leads_to_log_in = self.0.problem.code == ProblemCode::Unauthenticated;
        self
    }

    /// Says who is refused.
    pub(in crate::pages) fn to(mut self, caller: &Caller) -> Self {
        self.0.frame.caller = Some(caller.clone());
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        if self.0.leads_to_log_in {
            let back: String = byte_serialize(self.0.frame.path.as_bytes()).collect();
            let address = self.0.frame.url(format!("/log-in?next={back}"));
            return Redirect::to(&address).into_response();
        }
        let status = StatusCode::from_u16(self.0.problem.status);
        let mut response = html(&*self.0);
        *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if self.0.is_temporary() {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
        }
        response
    }
}
