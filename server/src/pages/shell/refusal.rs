//! Refusals and failures, as pages.

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Redirect, Response};
use url::form_urlencoded::byte_serialize;

use super::frame::{Frame, Section, html};
use super::visit::Site;
use crate::access::Caller;
use crate::problem::{Problem, ProblemCode};

/// A page that says why another one cannot be shown, or something was not done.
#[derive(Debug)]
pub(in crate::pages) struct Refusal(Box<RefusalPage>);

#[derive(Debug, Template)]
#[template(path = "refusal.html")]
struct RefusalPage {
    frame: Frame,
    problem: Problem,
    /// Whether it was a request for a page; an action is never sent again by itself.
    is_reading: bool,
}

impl RefusalPage {
    /// Whether the page comes again by itself.
    fn comes_again(&self) -> bool {
        self.is_reading
            && matches!(self.problem.code, ProblemCode::Unavailable | ProblemCode::TooSlow)
    }

    fn is_unknown(&self) -> bool {
        self.problem.code == ProblemCode::Unauthenticated
    }
}

impl Refusal {
    pub(in crate::pages) fn new(problem: Problem, site: &Site, path: String) -> Self {
        let frame = Frame { path, ..Frame::of_nobody(site, Section::Other) };
        Self(Box::new(RefusalPage { frame, problem, is_reading: false }))
    }

    /// Says that it refuses a page and no action: such a page comes again by itself, and people whom nobody knows come to the log-in first.
    pub(in crate::pages) fn of_reading(mut self, is_reading: bool) -> Self {
        self.0.is_reading = is_reading;
        self
    }

    /// Sets the caller that is refused.
    pub(in crate::pages) fn to(mut self, caller: &Caller) -> Self {
        self.0.frame.caller = Some(caller.clone());
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        if self.0.is_reading && self.0.is_unknown() {
            let back: String = byte_serialize(self.0.frame.path.as_bytes()).collect();
            let address = self.0.frame.url(format!("/log-in?next={back}"));
            return Redirect::to(&address).into_response();
        }
        with_status_of(&self.0.problem, html(&*self.0))
    }
}

/// Gives a page the status of a problem, and says when to come again.
pub(in crate::pages) fn with_status_of(problem: &Problem, mut page: Response) -> Response {
    let status = StatusCode::from_u16(problem.status);
    *page.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(seconds) = problem.retry_after {
        page.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    page
}
