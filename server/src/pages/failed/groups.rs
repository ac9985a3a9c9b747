//! `/failed/groups/{fingerprint}`: a group of failures, its note, and the decision about it.

use askama::Template;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use sexton_model::access::Role;
use sexton_model::failures::{GroupDecision, GroupState};
use sexton_operations::groups::{self, GroupWithTrend, Remark};

use super::list::trend;
use crate::access::{Operator, Viewer};
use crate::pages::shell::chart::Sparkline;
use crate::pages::shell::copy;
use crate::pages::shell::form::Form;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

#[derive(Debug, Template)]
#[template(path = "failed/group.html")]
struct GroupPage {
    frame: Frame,
    row: GroupWithTrend,
    role: Role,
}

/// A decision that can be made.
#[derive(Clone, Copy, Debug)]
struct DecisionChoice {
    label: &'static str,
    /// As a command.
    verb: &'static str,
    word: &'static str,
    effect: &'static str,
}

const MUTE: DecisionChoice = DecisionChoice {
    label: "Mute",
    verb: "mute",
    word: "muted",
    effect: "Lists leave its executions out, and go on counting them.",
};
const RESOLVE: DecisionChoice = DecisionChoice {
    label: "Resolve",
    verb: "resolve",
    word: "resolved",
    effect: "Its cause is removed. If it fails again, it is reopened.",
};
const REOPEN: DecisionChoice = DecisionChoice {
    label: "Reopen",
    verb: "reopen",
    word: "open",
    effect: "It needs attention again.",
};

impl DecisionChoice {
    fn id(self) -> String {
        format!("{}-reason", self.verb)
    }

    fn body(self) -> String {
        json!({"state": self.word}).to_string()
    }
}

impl GroupPage {
    fn name(&self) -> &str {
        let class = &self.row.group.error_class;
        if class.is_empty() { "Failures" } else { class }
    }

    fn trend(&self) -> Sparkline<'_> {
        trend(&self.row)
    }

    fn path(&self) -> String {
        format!("/failed/groups/{}", self.row.group.fingerprint)
    }

    /// Those that change something.
    fn decisions(&self) -> &'static [DecisionChoice] {
        match self.row.group.state {
            GroupState::Open | GroupState::Reopened => &[RESOLVE, MUTE],
            GroupState::Muted => &[REOPEN, RESOLVE],
            GroupState::Resolved => &[REOPEN, MUTE],
        }
    }

    fn command(&self, decision: &DecisionChoice) -> String {
        copy::command(&["groups", decision.verb, &self.row.group.fingerprint])
    }

    fn note_command(&self) -> String {
        copy::command(&["groups", "note", &self.row.group.fingerprint, "bank is down, ticket 123"])
    }

    fn request(&self, body: impl AsRef<str>) -> String {
        let path = format!("/failure-groups/{}/remark", self.row.group.fingerprint);
        let body: Value = serde_json::from_str(body.as_ref()).unwrap_or_default();
        copy::request("POST", &path, &body)
    }
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    Path(fingerprint): Path<String>,
) -> Result<Response, Refusal> {
    let found = groups::show(visit.reads(), &fingerprint).await;
    let row = found.map_err(|error| visit.refuse(error))?;
    let frame = visit.frame(Section::Failed).await?;
    Ok(html(&GroupPage { frame, row, role: Role::Operator }))
}

/// A note, or a decision.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemarkForm {
    note: Option<String>,
    state: Option<GroupDecision>,
    #[serde(default, deserialize_with = "crate::api::reason")]
    reason: Option<String>,
}

pub(super) async fn remark(
    visit: Visit<Operator>,
    Path(fingerprint): Path<String>,
    Form(RemarkForm { note, state, reason }): Form<RemarkForm>,
) -> Result<Response, Refusal> {
    let remark = match state {
        Some(state) => Remark::Decide(state, reason.as_deref()),
        None => Remark::Note(note.as_deref().unwrap_or_default()),
    };
    let done = groups::remark(&visit.writes(), &fingerprint, remark, visit.actor()).await;
    let (fingerprint, _) = done.map_err(|error| visit.refuse(error))?;
    Ok(Redirect::to(&visit.url(&format!("/failed/groups/{fingerprint}"))).into_response())
}
