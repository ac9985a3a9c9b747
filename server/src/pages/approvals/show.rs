//! `/approvals/{id}`: what a request would do, who requested it and why, and who has approved it.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use sexton_model::access::Role;
use sexton_operations::approvals::proposal::role;
use sexton_operations::approvals::requests::{self, describe, describe_state};
use sexton_store::approvals::ApprovalRequest;

use crate::access::Viewer;
use crate::api::problem_of_parameter;
use crate::pages::shell::copy;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// The address of a request says nothing more.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ApprovalQuery {}

#[derive(Debug, Template)]
#[template(path = "approvals/show.html")]
struct ApprovalPage {
    frame: Frame,
    request: ApprovalRequest,
    role: Role,
}

impl ApprovalPage {
    fn what(&self) -> String {
        describe(&self.request)
    }

    fn sentence(&self) -> String {
        format!("It {}.", describe_state(&self.request))
    }

    fn rules(&self) -> String {
        self.frame.cell(&self.request.rules.join(", "))
    }

    fn is_open(&self) -> bool {
        matches!(self.request.state.as_str(), "waiting" | "approved")
    }

    fn execution(&self) -> Option<&str> {
        self.request.proposal["execution"].as_str()
    }

    fn proposal(&self) -> String {
        self.frame.json(&self.request.proposal)
    }

    fn action(&self, action: &str) -> String {
        format!("/approvals/{}/{action}", self.request.id)
    }

    fn command(&self, action: &str) -> String {
        let id = self.request.id.to_string();
        match action {
            "reject" => copy::command(&["approvals", "reject", &id, "--reason", copy::REASON]),
            other => copy::command(&["approvals", other, &id]),
        }
    }

    fn request(&self, action: &str) -> String {
        copy::request("POST", &self.action(action), &json!({"reason": copy::REASON}))
    }
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    Path(id): Path<String>,
    _query: PageQuery<ApprovalQuery>,
) -> Result<Response, Refusal> {
    let is_no_number = |_| visit.refuse(problem_of_parameter("id", "is no number of a request"));
    let id = id.parse::<i64>().map_err(is_no_number)?;
    let request = requests::find(visit.reads(), id).await;
    let request = request.map_err(|error| visit.refuse(error))?;
    let frame = visit.frame(Section::Approvals).await?;
    let role = role(&request.kind);
    Ok(html(&ApprovalPage { frame, request, role }))
}
