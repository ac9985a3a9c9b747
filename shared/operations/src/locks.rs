//! Locks of jobs and services: who holds or waits for which, and rows freed by hand.
//!
//! An advisory lock ends with its session, which nobody but that session or the server can end; a row can be freed by an
//! operator, who sees first what that risks.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use sexton_store::Store;
use sexton_store::locks::{
    self, AdvisoryLock, BreakError, BrokenRow, Found, LockAttempt, LockFilter, LockJobs, LockKey,
    LockRow, LockSession, RowBreak, RowState, Since, SinceBasis,
};

use crate::actor::Actor;
use crate::error::{Conflict, InvalidRequest, NotFound, OperationError};
use crate::text::{ago, duration, line, precise};
use crate::workers::MAX_HEARTBEAT_AGE_MS;

/// Maximum number of locks of each kind in one answer.
pub const MAX_LOCKS: i64 = 1_000;
/// An instant that a person copies has milliseconds; the row has microseconds.
const AS_OF_PRECISION: TimeDelta = TimeDelta::milliseconds(1);
/// Maximum length of a name that another program wrote, in characters.
const MAX_NAME_CHARS: usize = 100;

/// Locks of both kinds.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockList {
    /// Advisory locks by key, holders before those that wait.
    pub advisory: Found<AdvisoryLock>,
    /// Rows by name, those that are free last.
    pub rows: Found<LockRow>,
}

/// Lists the locks that match a filter, at most `limit` of each kind.
///
/// # Errors
///
/// Those of the database.
pub async fn list(
    store: &Store,
    filter: &LockFilter,
    limit: i64,
) -> Result<LockList, OperationError> {
    let advisory = if filter.row.is_some() {
        Found { items: Vec::new(), more: 0 }
    } else {
        locks::list_advisory(store, filter, limit).await?
    };
    Ok(LockList { advisory, rows: locks::list_rows(store, filter, limit).await? })
}

/// Returns a row that an operator may break now, as it is.
///
/// `as_of`: the instant since which it is held, if the operator saw it earlier; `force`: also if the attempt that took it
/// runs.
///
/// # Errors
///
/// [`NotFound::LockRow`]; [`InvalidRequest::AdvisoryLock`] for a key instead of a name; [`Conflict`] if the row is free,
/// has another holder than the operator saw, or is held for an attempt that runs.
pub async fn find_to_break(
    store: &Store,
    name: &str,
    as_of: Option<DateTime<Utc>>,
    force: bool,
) -> Result<LockRow, OperationError> {
    let Some(row) = locks::find_row(store, name).await? else {
        return Err(missing(store, name).await);
    };
    if row.state == RowState::Free {
        return Err(Conflict::LockRowFree(row.name).into());
    }
    if as_of.is_some_and(|at| (row.locked_at - at).abs() >= AS_OF_PRECISION) {
        return Err(changed(&row).into());
    }
    if !force && row.attempt.as_ref().is_some_and(LockAttempt::is_running) {
        return Err(running(&row).into());
    }
    Ok(row)
}

/// Frees a row, if the holder that `seen` names has it. One transaction, with its record in the audit. The row stays; its
/// holder, if it lives, finds out at its next extension, and stops its work.
///
/// # Errors
///
/// As [`find_to_break`], of the row as it is now.
pub async fn break_row(
    store: &Store,
    seen: &LockRow,
    force: bool,
    actor: &Actor,
    reason: &str,
) -> Result<BrokenRow, OperationError> {
    let LockRow { name, locked_by, locked_at, .. } = seen;
    let request = RowBreak { name, locked_by, locked_at: *locked_at, force };
    let broken = locks::break_row(store, request, actor.because(Some(reason))).await;
    broken.map_err(|error| match error {
        BreakError::Missing(name) => NotFound::LockRow(name).into(),
        BreakError::Free(row) => Conflict::LockRowFree(row.name).into(),
        BreakError::Changed(row) => changed(&row).into(),
        BreakError::Running(row) => running(&row).into(),
        error @ BreakError::Locked(_) => OperationError::Failed(error.to_string()),
        BreakError::Store(error) => error.into(),
    })
}

fn changed(row: &LockRow) -> Conflict {
    Conflict::LockRowChanged {
        name: row.name.clone(),
        locked_by: line(&row.locked_by, MAX_NAME_CHARS),
        locked_at: precise(row.locked_at),
    }
}

/// The error for a row whose attempt runs; for any other, that it has another holder.
fn running(row: &LockRow) -> Conflict {
    let Some(attempt) = &row.attempt else { return changed(row) };
    Conflict::LockRowRunning {
        name: row.name.clone(),
        holder: describe_attempt(attempt),
        execution: attempt.execution_id,
    }
}

/// The error for a row that does not exist: a number is probably the key of an advisory lock.
async fn missing(store: &Store, name: &str) -> OperationError {
    let Ok(key) = name.parse::<LockKey>() else {
        return NotFound::LockRow(name.to_owned()).into();
    };
    let filter = LockFilter { key: Some(key), ..LockFilter::default() };
    match locks::list_advisory(store, &filter, MAX_LOCKS).await {
        Ok(found) => {
            let holders = found.items.into_iter().filter(|lock| lock.is_held).collect();
            InvalidRequest::AdvisoryLock { key, holders }.into()
        }
        Err(error) => error.into(),
    }
}

/// Says what a break risks, as the end of a sentence.
pub fn describe_risk(row: &LockRow) -> String {
    match (&row.attempt, row.state) {
        (_, RowState::AtLeast) => {
            "its holder is done, and the job may run again sooner than its at_least says".to_owned()
        }
        (Some(attempt), _) if attempt.is_running() => format!(
            "{}; until its worker finds out and stops it, a third of at_most later, another holder may \
             work at the same time",
            describe_attempt(attempt)
        ),
        (Some(attempt), _) => format!("{}, which took it", describe_attempt(attempt)),
        (None, _) => "Sexton cannot see whether that process still works; if it does, another holder may work \
                      at the same time until it finds out"
            .to_owned(),
    }
}

/// Names an attempt with its worker: `attempt 1 of 0199… runs on w1`.
pub fn describe_attempt(attempt: &LockAttempt) -> String {
    let LockAttempt { attempt: number, execution_id, worker, silent_ms, outcome, .. } = attempt;
    let what = format!("attempt {number} of {execution_id}");
    match outcome {
        Some(outcome) => format!("{what} on {worker} has ended ({outcome})"),
        None if *silent_ms > MAX_HEARTBEAT_AGE_MS => {
            format!("{what} runs on {worker}, which has been silent for {}", duration(*silent_ms))
        }
        None => format!("{what} runs on {worker}"),
    }
}

/// Names the session of an advisory lock: `billing-api, ann at 10.1.2.3, backend 4123`.
pub fn describe_session(session: Option<&LockSession>) -> String {
    let Some(session) = session else { return "a prepared transaction".to_owned() };
    let login = session.login.as_deref().unwrap_or("?");
    let client = match &session.client_address {
        Some(address) => format!("{login} at {address}"),
        None => login.to_owned(),
    };
    let parts = [line(&session.application, MAX_NAME_CHARS), client];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.chain([format!("backend {}", session.pid)]).collect::<Vec<_>>().join(", ")
}

/// Says since when, and what that is known from: `3 m ago (tick)`.
pub fn describe_since(since: Option<Since>, now: DateTime<Utc>) -> String {
    let Some(Since { at, basis }) = since else { return "hidden".to_owned() };
    let basis = match basis {
        SinceBasis::Wait => return ago(at, now),
        SinceBasis::Statement => "statement",
        SinceBasis::Tick => "tick",
        SinceBasis::Attempt => "attempt",
        SinceBasis::Transaction => "transaction",
        SinceBasis::Session => "session",
    };
    format!("{} ({basis})", ago(at, now))
}

/// Names the jobs of a lock: `shop.charge and 2 more`; `None`: no job has it.
pub fn describe_jobs(jobs: &LockJobs) -> Option<String> {
    let first = jobs.names.first()?;
    Some(match jobs.count {
        ..=1 => first.clone(),
        count => format!("{first} and {} more", count - 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_by_what_the_server_shows_of_it() {
        let session = LockSession {
            pid: 4123,
            login: Some("ann".to_owned()),
            application: "billing-api\u{1b}[2J".to_owned(),
            worker: None,
            client_address: Some("10.1.2.3".to_owned()),
            state: None,
            idle_since: None,
            query: None,
        };
        assert_eq!(
            describe_session(Some(&session)),
            "billing-api\\u{1b}[2J, ann at 10.1.2.3, backend 4123"
        );
        let hidden = LockSession { application: String::new(), client_address: None, ..session };
        assert_eq!(describe_session(Some(&hidden)), "ann, backend 4123");
        assert_eq!(describe_session(None), "a prepared transaction");
    }

    #[test]
    fn the_jobs_of_a_lock_are_counted() {
        let jobs = |names: &[&str], count| LockJobs {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            count,
            timeout_ms: None,
        };
        assert_eq!(describe_jobs(&jobs(&[], 0)), None);
        assert_eq!(describe_jobs(&jobs(&["a.b"], 1)).unwrap(), "a.b");
        assert_eq!(describe_jobs(&jobs(&["a.b", "c.d"], 12)).unwrap(), "a.b and 11 more");
    }
}
