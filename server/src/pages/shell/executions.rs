//! Executions in tables: the same columns wherever a page lists some.

use chrono::{DateTime, Utc};
use sexton_model::progress::Progress;
use sexton_operations::error::OperationError;
use sexton_operations::short_ids;
use sexton_operations::text;
use sexton_store::Store;
use sexton_store::executions::Execution;

/// Longest remark, in characters.
const MAX_REMARK_CHARS: usize = 200;

/// A row of a table of executions.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::pages) struct ExecutionRow {
    pub(in crate::pages) execution: Execution,
    /// The beginning of its id that names it alone.
    pub(in crate::pages) short_id: String,
    /// What comes next, or why it ended.
    pub(in crate::pages) remark: String,
}

/// Makes rows of executions. `now` is the database's clock.
pub(in crate::pages) async fn rows(
    store: &Store,
    executions: Vec<Execution>,
    now: DateTime<Utc>,
) -> Result<Vec<ExecutionRow>, OperationError> {
    let ids = short_ids::of_executions(store, executions.iter().map(|one| one.id)).await?;
    let row = |execution: Execution| ExecutionRow {
        short_id: ids.get(&execution.id),
        remark: text::line(&remark(&execution, now), MAX_REMARK_CHARS),
        execution,
    };
    Ok(executions.into_iter().map(row).collect())
}

/// Returns a task's last reported progress in words; `None`: it reported nothing that can be read.
pub(in crate::pages) fn progress(execution: &Execution) -> Option<Progress> {
    serde_json::from_value(execution.progress.clone()?).ok()
}

/// Says what comes next, or why it ended.
pub(in crate::pages) fn remark(execution: &Execution, now: DateTime<Utc>) -> String {
    let error = || {
        let class = execution.error_class.as_deref().unwrap_or("failed");
        let message = execution.error_message.as_deref().unwrap_or_default();
        format!("{class}: {message}")
    };
    let ended = || {
        execution.finished_at.map_or_else(String::new, |at| format!("ended {}", text::ago(at, now)))
    };
    match execution.state.as_str() {
        "pending" if execution.is_blocked() => "waits for others of its flow".to_owned(),
        "pending" if execution.is_waiter() => match execution.next_attempt_at {
            Some(due) if due > now => format!("for later: due {}", text::ago(due, now)),
            _ => "waits until its job is free".to_owned(),
        },
        "pending" if execution.ticket_published_at.is_none() => {
            "waits to be sent to its queue".to_owned()
        }
        "pending" => "waits for a worker".to_owned(),
        "running" if execution.replaced_by.is_some() => "a newer firing takes its place".to_owned(),
        "running" if execution.cancel_requested => "its worker is ending it".to_owned(),
        "running" => {
            let since = execution.started_at.map(|at| format!("began {}", text::ago(at, now)));
            let progress = progress(execution).map(|progress| progress.to_string());
            let parts: Vec<String> = progress.into_iter().chain(since).collect();
            parts.join("; ")
        }
        "retrying" => {
            let due = execution.next_attempt_at;
            let when = due.map_or_else(String::new, |at| format!(" {}", text::ago(at, now)));
            format!("runs again{when}; {}", error())
        }
        "failed" | "discarded" => error(),
        "cancelled" if execution.replaced_by.is_some() => {
            "a newer firing took its place".to_owned()
        }
        "skipped" => match execution.skip_reason.as_deref() {
            Some("overlap") => "an earlier execution of its job was under way".to_owned(),
            Some("stale") => "it came too late to begin".to_owned(),
            Some("upstream") => "the others of its flow ended otherwise".to_owned(),
            Some("replaced") => "a newer firing took its place".to_owned(),
            other => other.unwrap_or("no reason is recorded").to_owned(),
        },
        "succeeded" => match (execution.started_at, execution.finished_at) {
            (Some(from), Some(to)) => {
                let took = text::duration((to - from).num_milliseconds());
                format!("took {took}, {}", ended())
            }
            _ => ended(),
        },
        _ => ended(),
    }
}
