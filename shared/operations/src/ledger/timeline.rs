//! The events of an execution, in the order of time. Pure: sorts the rows that were read.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_store::attempts::Attempt;
use sexton_store::executions::Execution;
use sexton_store::operator::OperatorAction;

/// One event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TimelineEvent))]
pub struct Event {
    /// When, by the database's clock.
    pub at: DateTime<Utc>,
    /// Its kind: `claimed`, `published`, `opened`, `ended`, `ended_late`, `finished`, `next_attempt`, or the
    /// operator's action.
    pub event: String,
    /// The attempt's number.
    pub attempt: Option<i32>,
    /// The process, the worker or the operator.
    pub by: Option<String>,
    /// An outcome, an error, a reason.
    pub detail: Option<String>,
}

/// Returns the rows as events. Of the published tickets the row knows only the last.
pub fn timeline(
    execution: &Execution,
    attempts: &[Attempt],
    actions: &[OperatorAction],
) -> Vec<Event> {
    let plain = |at, event: &str| Event {
        at,
        event: event.to_owned(),
        attempt: None,
        by: None,
        detail: None,
    };
    let claimed = plain(execution.claimed_at, "claimed");
    let mut events = vec![Event { by: Some(execution.claimed_by.clone()), ..claimed }];
    events.extend(
        execution
            .ticket_published_at
            .map(|at| Event { attempt: Some(execution.attempt), ..plain(at, "published") }),
    );
    for attempt in attempts {
        let worker = attempt.worker_name.clone().unwrap_or_else(|| attempt.worker_id.to_string());
        let of = |at, event| Event {
            attempt: Some(attempt.number),
            by: Some(worker.clone()),
            ..plain(at, event)
        };
        events.push(of(attempt.opened_at, "opened"));
        events.extend(
            attempt.finished_at.map(|at| Event { detail: outcome(attempt), ..of(at, "ended") }),
        );
        events.extend(
            attempt
                .late_at
                .map(|at| Event { detail: attempt.late_outcome.clone(), ..of(at, "ended_late") }),
        );
    }
    for action in actions {
        events.push(Event {
            by: Some(action.actor.clone()),
            detail: action.reason.clone(),
            ..plain(action.at, &action.action)
        });
    }
    events.extend(execution.finished_at.map(|at| {
        let why = execution.skip_reason.as_ref().map(|why| format!("{}: {why}", execution.state));
        Event { detail: Some(why.unwrap_or(execution.state.clone())), ..plain(at, "finished") }
    }));
    let due = execution.next_attempt_at.filter(|_| !execution.is_blocked());
    events.extend(
        due.map(|at| Event { attempt: Some(execution.attempt), ..plain(at, "next_attempt") }),
    );
    // The sort is stable: events of the same instant stay in the order above, in which they happened.
    events.sort_by_key(|event| event.at);
    events
}

fn outcome(attempt: &Attempt) -> Option<String> {
    let outcome = attempt.outcome.as_deref()?;
    Some(match (&attempt.error_class, &attempt.error_message) {
        (Some(class), Some(message)) => format!("{outcome}, {class}: {message}"),
        (Some(text), None) | (None, Some(text)) => format!("{outcome}, {text}"),
        (None, None) => outcome.to_owned(),
    })
}
