//! `/flows/{id}`: the members of a flow, and what each waits for.

use askama::Template;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use serde_json::json;
use sexton_model::access::Role;
use sexton_operations::flows::{self, FlowDetails, describe_wait};
use sexton_store::flows::{Flow, FlowMember};

use super::list::state;
use crate::access::{Operator, Viewer};
use crate::api::ReasonBody;
use crate::pages::shell::copy;
use crate::pages::shell::form::Form;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// The address of a flow says nothing more.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FlowQuery {}

#[derive(Debug, Template)]
#[template(path = "flows/show.html")]
struct FlowPage<'a> {
    frame: Frame,
    flow: &'a Flow,
    members: &'a [FlowMember],
    role: Role,
}

impl FlowPage<'_> {
    fn state(&self) -> &'static str {
        state(self.flow)
    }

    fn sentence(&self) -> String {
        let Flow { members, open, failed, .. } = *self.flow;
        match self.state() {
            "ended" => format!("All of its {members} members have ended."),
            "blocked" => format!(
                "{failed} of its members failed for good, and those that wait for them are held up. Requeue or discard what failed."
            ),
            "incomplete" => "Some of its members could not be made.".to_owned(),
            _ => format!("{open} of its {members} members have not ended."),
        }
    }

    /// The names of the members before it.
    fn after(&self, member: &FlowMember) -> String {
        let more = member.upstream - member.after.len() as i64;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        self.frame.cell(&format!("{}{more}", member.after.join(", ")))
    }

    /// What holds it up, or what became of it.
    fn detail(&self, member: &FlowMember) -> String {
        let wait = describe_wait(member);
        let text =
            wait.or_else(|| member.skip_reason.clone()).or_else(|| member.error_message.clone());
        self.frame.cell(&text.unwrap_or_default())
    }

    fn is_cut(&self) -> bool {
        self.members.len() < usize::try_from(self.flow.members).unwrap_or(0)
    }

    fn cancel_path(&self) -> String {
        format!("/flows/{}/cancel", self.flow.id)
    }

    fn command(&self) -> String {
        copy::command(&["flows", "cancel", &self.flow.id.to_string()])
    }

    fn request(&self) -> String {
        copy::request("POST", &self.cancel_path(), &json!({"reason": copy::REASON}))
    }
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    Path(id): Path<String>,
    _query: PageQuery<FlowQuery>,
) -> Result<Response, Refusal> {
    let found = flows::find(visit.reads(), &id).await;
    let FlowDetails { flow, all } = found.map_err(|error| visit.refuse(error))?;
    let frame = visit.frame(Section::Other).await?;
    Ok(html(&FlowPage { frame, flow: &flow, members: &all, role: Role::Operator }))
}

pub(super) async fn cancel(
    visit: Visit<Operator>,
    Path(id): Path<String>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    let cancelled = flows::cancel(&visit.writes(), &id, visit.actor(), reason.as_deref()).await;
    let (flow, _) = cancelled.map_err(|error| visit.refuse(error))?;
    Ok(Redirect::to(&visit.url(&format!("/flows/{}", flow.id))).into_response())
}
