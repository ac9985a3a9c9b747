//! `/failed/{id}`: what happened to a failed execution, and what can be done.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use sexton_model::access::Role;
use sexton_model::id::ExecutionId;
use sexton_model::output::{Line, Stream};
use sexton_operations::execution_ids;
use sexton_operations::failed::details::{self, FailureDetails};
use sexton_store::executions::Execution;

use crate::access::Viewer;
use crate::pages::shell::copy;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// What was just done here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Done {
    /// Its params or its pool were changed, and it stays failed.
    Edited,
    /// It was requeued.
    Requeued,
    /// A bulk verifies first.
    Verifying,
    /// It was given up.
    Discarded,
    /// It is failed again.
    Restored,
}

impl Done {
    /// The word in an address.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Edited => "edited",
            Self::Requeued => "requeued",
            Self::Verifying => "verifying",
            Self::Discarded => "discarded",
            Self::Restored => "restored",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::Edited => "You have edited it. It stays failed until somebody requeues it.",
            Self::Requeued => "You have requeued it. This page shows what becomes of it.",
            Self::Verifying => {
                "Its job's verify task runs first; it is requeued if the effect has not happened."
            }
            Self::Discarded => "You have discarded it. It can be restored.",
            Self::Restored => "You have restored it. It is failed again.",
        }
    }
}

/// The parameters in the address of a failure.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FailureQuery {
    done: Option<Done>,
}

#[derive(Debug, Template)]
#[template(path = "failed/show.html")]
struct FailurePage<'a> {
    frame: Frame,
    details: &'a FailureDetails,
    execution: &'a Execution,
    notice: Option<&'static str>,
    role: Role,
    editor: Role,
}

impl FailurePage<'_> {
    fn sentence(&self) -> String {
        let execution = self.execution;
        let attempts = match execution.attempts_made {
            Some(1) => "after 1 attempt".to_owned(),
            Some(made) => format!("after {made} attempts"),
            None => "after its attempts".to_owned(),
        };
        match execution.state.as_str() {
            "failed" => {
                format!("It failed {attempts}, and waits for a decision: no retry is left.")
            }
            "discarded" => format!("It failed {attempts}, and somebody gave it up."),
            "succeeded" => format!("It succeeded {attempts}."),
            "running" => "A worker runs it.".to_owned(),
            "retrying" => format!("It failed {attempts}, and runs again by itself."),
            "pending" => "It waits for a worker.".to_owned(),
            other => format!("It is {other}."),
        }
    }

    fn action(&self, action: &str) -> String {
        format!("/failed/{}/{action}", self.execution.id)
    }

    fn command(&self, action: &str) -> String {
        let id = self.execution.id.to_string();
        let attempt = self.execution.attempt.to_string();
        match action {
            "requeue" => copy::command(&["failed", "requeue", &id, "--attempt", &attempt]),
            "discard" => copy::command(&["failed", "discard", &id, "--reason", copy::REASON]),
            other => copy::command(&["failed", other, &id]),
        }
    }

    fn request(&self, action: &str) -> String {
        let body = match action {
            "requeue" => json!({"attempt": self.execution.attempt}),
            "discard" => json!({"reason": copy::REASON}),
            _ => Value::Null,
        };
        copy::request("POST", &format!("/failures/{}/{action}", self.execution.id), &body)
    }

    fn is_error(&self, line: &Line) -> bool {
        line.stream == Stream::Stderr
    }
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    Path(id): Path<String>,
    query: PageQuery<FailureQuery>,
) -> Result<Response, Refusal> {
    let store = visit.reads();
    let found = async {
        let id = execution_ids::resolve(store, &id).await?;
        let missing = || execution_ids::missing(ExecutionId::new(id));
        details::find(store, id).await?.ok_or_else(missing)
    };
    let details = found.await.map_err(|error| visit.refuse(error))?;
    let frame = visit.frame(Section::Failed).await?;
    let notice = query.values.done.map(Done::sentence);
    let execution = &details.execution;
    Ok(html(&FailurePage {
        frame,
        details: &details,
        execution,
        notice,
        role: Role::Operator,
        editor: Role::Editor,
    }))
}
