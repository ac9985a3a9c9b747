//! A request for a page, whose sender may see it.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use sexton_operations::actor::Actor;
use sexton_operations::approvals::requests;
use sexton_service::settings::EffectiveSetting;
use sexton_store::Store;
use sexton_store::approvals::{ApprovalRequest, WaitingRequests};

use super::frame::{Frame, Section};
use super::heading::SharedHeading;
use super::refusal::Refusal;
use super::shared::{REFRESH, SharedAnswers};
use crate::access::{Allowed, Backend, Caller, Permission};
use crate::events::{Hub, Listener, Topic};
use crate::problem::Problem;

/// What all pages work with. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::pages) struct Site {
    pub(in crate::pages) backend: Backend,
    /// The base path, which stands before every path: empty, or with a slash before and none behind it.
    pub(in crate::pages) base: Arc<str>,
    pub(in crate::pages) hub: Hub,
    pub(super) shared: SharedAnswers,
    heading: SharedHeading,
}

impl Site {
    pub(in crate::pages) fn new(backend: Backend, hub: Hub) -> Self {
        let (shared, heading) = (SharedAnswers::default(), SharedHeading::default());
        Self { base: backend.base_path(), backend, hub, shared, heading }
    }
}

/// A request whose sender has the role `P`.
#[derive(Debug)]
pub(in crate::pages) struct Visit<P> {
    allowed: Allowed<P>,
    site: Site,
    uri: Uri,
    /// Whether it only reads.
    is_reading: bool,
    /// Whether an open page fetches its content, which is shared and names nobody.
    is_refresh: bool,
}

impl<P: Permission> Visit<P> {
    /// For requests that change nothing.
    pub(in crate::pages) fn reads(&self) -> &Store {
        self.allowed.reads()
    }

    /// For the others.
    pub(in crate::pages) fn writes(&self) -> Store {
        self.allowed.writes()
    }

    /// The caller of the request.
    pub(in crate::pages) fn caller(&self) -> &Caller {
        self.allowed.caller()
    }

    /// The request, as the API has it.
    pub(in crate::pages) fn allowed(&self) -> &Allowed<P> {
        &self.allowed
    }

    /// For the audit.
    pub(in crate::pages) fn actor(&self) -> &Actor {
        self.allowed.actor()
    }

    /// Begins to listen to changes.
    pub(in crate::pages) fn listen(&self, topics: Vec<Topic>) -> Listener {
        self.site.hub.listen(topics)
    }

    /// Returns the frame of a page, with the database's clock. Open pages that fetch themselves again may share a clock that is a moment old.
    pub(in crate::pages) async fn frame(&self, section: Section) -> Result<Frame, Refusal> {
        let (changes, read) = (self.site.hub.changes(), || self.read_heading());
        let heading = self.site.heading.get(changes, self.is_refresh, read).await;
        let heading = heading.map_err(|problem| self.refuse(problem))?;
        let WaitingRequests { now, count: waiting } = heading;
        let mut caller = self.allowed.caller().clone();
        if self.is_refresh {
            caller.name.clear();
            caller.session_expires_at = None;
        }
        let (base, caller) = (Arc::clone(&self.site.base), Some(caller));
        Ok(Frame { base, caller, section, now, path: self.path(), waiting })
    }

    async fn read_heading(&self) -> Result<WaitingRequests, Problem> {
        Ok(requests::count_waiting(self.reads()).await?)
    }

    /// The settings of this server, without any secret.
    pub(in crate::pages) fn settings(&self) -> Arc<[EffectiveSetting]> {
        self.site.backend.settings()
    }

    /// The name of this server.
    pub(in crate::pages) fn host(&self) -> &str {
        self.site.backend.host()
    }

    /// Returns an address of this console.
    pub(in crate::pages) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.site.base)
    }

    /// Leads to the page of a request that waits for another person.
    pub(in crate::pages) fn to_request(&self, request: &ApprovalRequest) -> Response {
        Redirect::to(&self.url(&format!("/approvals/{}", request.id))).into_response()
    }

    /// The path and the query that were requested, with the base path.
    pub(in crate::pages) fn path(&self) -> String {
        self.url(self.uri.path_and_query().map_or("/", |path| path.as_str()))
    }

    /// Makes a page of a refusal.
    pub(in crate::pages) fn refuse(&self, problem: impl Into<Problem>) -> Refusal {
        let refusal = Refusal::new(problem.into(), &self.site, self.path());
        refusal.of_reading(self.is_reading).to(self.allowed.caller())
    }
}

impl<P: Permission> FromRequestParts<Site> for Visit<P> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, site: &Site) -> Result<Self, Refusal> {
        let allowed = Allowed::<P>::from_request_parts(parts, &site.backend).await;
        let uri = parts.uri.clone();
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let is_reading = parts.method == Method::GET;
        let allowed = allowed.map_err(|problem| {
            Refusal::new(problem, site, format!("{}{path}", site.base)).of_reading(is_reading)
        })?;
        let is_refresh = parts.headers.contains_key(REFRESH);
        Ok(Self { allowed, site: site.clone(), uri, is_reading, is_refresh })
    }
}
