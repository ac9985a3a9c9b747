//! `/checks/{name}`: a check, its newest pings, and what can be done.

use askama::Template;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use serde_json::Value;
use sexton_model::access::Role;
use sexton_operations::checks::{self, CheckAction};
use sexton_store::checks::list::{CheckStatus, ListedPing};

use super::checks::{expected, state};
use crate::access::{Operator, Viewer};
use crate::api::ReasonBody;
use crate::pages::shell::copy;
use crate::pages::shell::form::Form;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::segment::segment;
use crate::pages::shell::visit::Visit;

/// Pings that the page shows.
const MAX_PINGS: i64 = 50;

/// The address of a check says nothing more.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CheckQuery {}

#[derive(Debug, Template)]
#[template(path = "monitors/check.html")]
struct CheckPage {
    frame: Frame,
    check: CheckStatus,
    pings: Vec<ListedPing>,
    role: Role,
}

impl CheckPage {
    fn state(&self) -> (String, &'static str) {
        state(&self.frame, &self.check)
    }

    fn expected(&self) -> String {
        expected(&self.frame, &self.check)
    }

    /// The addresses of its pings. Viewers see none: an address lets its reader report for the job.
    fn addresses(&self) -> Vec<String> {
        if !self.frame.may(self.role) {
            return Vec::new();
        }
        let by_name = self.check.key.as_ref();
        let by_name =
            by_name.map(|key| self.frame.url(format!("/ping/<key {key}>/{}", self.check.name)));
        [self.frame.url(format!("/ping/{}", self.check.id))].into_iter().chain(by_name).collect()
    }

    /// `pause` or `resume`.
    fn action(&self, action: &str) -> String {
        format!("{}/{action}", path(&self.check.name))
    }

    fn command(&self, action: &str) -> String {
        copy::command(&["checks", action, &self.check.name])
    }

    fn request(&self, action: &str) -> String {
        copy::request("POST", &self.action(action), &Value::Null)
    }
}

fn path(name: &str) -> String {
    format!("/checks/{}", segment(name))
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    Path(name): Path<String>,
    _query: PageQuery<CheckQuery>,
) -> Result<Response, Refusal> {
    let shown = checks::show(visit.reads(), &name, MAX_PINGS).await;
    let (check, pings) = shown.map_err(|error| visit.refuse(error))?;
    let frame = visit.frame(Section::Monitors).await?;
    Ok(html(&CheckPage { frame, check, pings, role: Role::Operator }))
}

async fn act(
    visit: &Visit<Operator>,
    name: &str,
    action: CheckAction,
    reason: Option<&str>,
) -> Result<Response, Refusal> {
    let acted = checks::act(&visit.writes(), name, action, visit.actor(), reason).await;
    acted.map_err(|error| visit.refuse(error))?;
    Ok(Redirect::to(&visit.url(&path(name))).into_response())
}

pub(super) async fn pause(
    visit: Visit<Operator>,
    Path(name): Path<String>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    act(&visit, &name, CheckAction::Pause, reason.as_deref()).await
}

pub(super) async fn resume(
    visit: Visit<Operator>,
    Path(name): Path<String>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    act(&visit, &name, CheckAction::Resume, reason.as_deref()).await
}
