//! `/executions/{id}`: one timeline from the claim to what people did, and everything that is known beside it.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sexton_model::access::Role;
use sexton_model::failures::MASK;
use sexton_model::job::is_reserved;
use sexton_model::progress::Progress;
use sexton_operations::executions::details::{self, ExecutionDetails, ExplainedDetails};
use sexton_operations::executions::traces::AttemptTrace;
use sexton_operations::flows::describe_wait;
use sexton_operations::ledger::execution::ExplainedExecution;
use sexton_store::attempts::Attempt;
use sexton_store::executions::Execution;
use sexton_store::flows::FlowMember;
use uuid::Uuid;

use super::output::{ShownOutput, shown};
use crate::access::Viewer;
use crate::pages::shell::copy;
use crate::pages::shell::executions::progress;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::timeline::{TimelineEntry, entries, sentence};
use crate::pages::shell::visit::Visit;

/// Members of a flow that the page lists.
const MEMBERS_SHOWN: usize = 50;

/// What was just done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Done {
    /// It was cancelled.
    Cancelled,
    /// Its worker ends it.
    CancelRequested,
    /// It was made to repeat another one, or by a trigger.
    RunAgain,
    /// The form that made it was sent again.
    SentTwice,
}

impl Done {
    /// The word in an address.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::CancelRequested => "cancel_requested",
            Self::RunAgain => "run_again",
            Self::SentTwice => "sent_twice",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::Cancelled => "You have cancelled it.",
            Self::CancelRequested => {
                "You have requested its cancel. Its worker ends the task, and this page shows when."
            }
            Self::RunAgain => "You have made this execution. This page shows what becomes of it.",
            Self::SentTwice => "The form was sent more than once, and made only this execution.",
        }
    }
}

/// The parameters in the address of an execution.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ExecutionQuery {
    done: Option<Done>,
    /// The attempt whose output is shown; absent: the last one.
    attempt: Option<i32>,
}

#[derive(Debug, Template)]
#[template(path = "executions/show.html")]
struct ExecutionPage<'a> {
    frame: Frame,
    details: &'a ExecutionDetails,
    execution: &'a Execution,
    explained: &'a ExplainedExecution,
    timeline: Vec<TimelineEntry>,
    progress: Option<Progress>,
    output: Option<ShownOutput>,
    traces: Vec<AttemptTrace>,
    notice: Option<&'static str>,
    role: Role,
    /// A form that is sent twice runs once.
    key: Uuid,
}

/// Returns the params without those in which something is masked: sent back, the mask would take the place of the secret.
fn without_masks(params: &Value) -> Map<String, Value> {
    let fields = params.as_object().into_iter().flatten();
    let plain = fields.filter(|(_, value)| !value.to_string().contains(MASK));
    plain.map(|(name, value)| (name.clone(), value.clone())).collect()
}

impl ExecutionPage<'_> {
    fn sentence(&self) -> String {
        sentence(&self.explained.why)
    }

    fn can_be_cancelled(&self) -> bool {
        matches!(self.execution.state.as_str(), "pending" | "running" | "retrying")
            && !self.execution.cancel_requested
    }

    /// Tasks that other programs publish, and questions, have no job that could be triggered.
    fn can_run_again(&self) -> bool {
        matches!(self.execution.state.as_str(), "succeeded" | "cancelled" | "skipped" | "discarded")
            && !is_reserved(&self.execution.job_name)
    }

    /// Its key is that of a firing of the schedule.
    fn is_firing(&self) -> bool {
        let Execution { execution_key, own_key, .. } = self.execution;
        let kinds = ["cron-", "every-", "once-"];
        !own_key && kinds.iter().any(|kind| execution_key.starts_with(kind))
    }

    fn is_foreign(&self) -> bool {
        is_reserved(&self.execution.job_name)
    }

    fn action(&self, action: &str) -> String {
        format!("/executions/{}/{action}", self.execution.id)
    }

    fn cancel_command(&self) -> String {
        copy::command(&["executions", "cancel", &self.execution.id.to_string()])
    }

    fn cancel_request(&self) -> String {
        let path = format!("/executions/{}/cancel", self.execution.id);
        copy::request("POST", &path, &json!({"reason": copy::REASON}))
    }

    fn trigger_command(&self) -> String {
        let params = Value::Object(without_masks(&self.execution.params)).to_string();
        copy::command(&["jobs", "trigger", &self.execution.job_name, "--params", &params])
    }

    fn trigger_request(&self) -> String {
        let path = format!("/jobs/{}/trigger", self.execution.job_name);
        copy::request("POST", &path, &json!({"params": without_masks(&self.execution.params)}))
    }

    fn has_masks(&self) -> bool {
        self.execution.params.to_string().contains(MASK)
    }

    fn logs_command(&self, output: &ShownOutput) -> String {
        let id = self.execution.id.to_string();
        copy::command(&["executions", "logs", &id, "--attempt", &output.number.to_string()])
    }

    fn is_shown(&self, attempt: &Attempt) -> bool {
        self.output.as_ref().is_some_and(|output| output.number == attempt.number)
    }

    fn members(&self) -> &[FlowMember] {
        let all = self.details.flow.as_ref().map_or(&[][..], |flow| &flow.all);
        &all[..all.len().min(MEMBERS_SHOWN)]
    }

    fn members_left_out(&self) -> usize {
        self.details.flow.as_ref().map_or(0, |flow| flow.all.len().saturating_sub(MEMBERS_SHOWN))
    }

    fn wait_of(member: &FlowMember) -> String {
        describe_wait(member).unwrap_or_default()
    }

    fn has_params(&self) -> bool {
        self.execution.params.as_object().is_none_or(|params| !params.is_empty())
    }

    fn result(&self) -> Option<&Value> {
        self.execution.result.as_ref().filter(|result| !result.is_null())
    }
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    Path(id): Path<String>,
    query: PageQuery<ExecutionQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Executions).await?;
    let store = visit.reads();
    let found = async {
        let found = details::find_explained(store, &id, frame.now).await?;
        let output = shown(store, found.details.execution.id, query.values.attempt).await?;
        Ok((found, output))
    };
    let found: Result<_, sexton_operations::error::OperationError> = found.await;
    let (found, output) = found.map_err(|error| visit.refuse(error))?;
    let ExplainedDetails { details, explained, traces } = found;
    Ok(html(&ExecutionPage {
        frame,
        execution: &details.execution,
        timeline: entries(&explained.timeline),
        progress: progress(&details.execution),
        output,
        traces,
        notice: query.values.done.map(Done::sentence),
        role: Role::Operator,
        key: Uuid::new_v4(),
        details: &details,
        explained: &explained,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_request_has_no_masks() {
        let params = json!({
            "order": 7, "api_token": MASK, "login": {"user": "ann", "password": MASK},
            "url": "https://ann:***@shop.example/", "list": [1, "a"],
        });
        assert_eq!(Value::Object(without_masks(&params)), json!({"order": 7, "list": [1, "a"]}));
        assert!(without_masks(&Value::Null).is_empty());
    }
}
