//! The history of an execution: one line for each number that was spent.
//!
//! A number is spent by an attempt, or without one: an execution whose ticket could not be opened
//! fails, and takes the next number as it does at the end of an attempt. Such a number has no row of its
//! own; the numbers around it show it.
//!
//! Where retention has removed the attempts ([`is_removed`]), no number is known.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::progress::Progress;
use sexton_store::attempts::Attempt;
use sexton_store::executions::Execution;

use crate::show::{Cell, Table, Tone, ago, duration, line};

/// How an execution's last number ended that no attempt was opened with; a word of
/// `executions.outcome`.
const UNOPENED: &str = "unopened";
/// The most that is shown of what a failed attempt handed back, in characters; `--json` has it whole.
const MAX_RESULT_CHARS: usize = 200;

/// The most that is shown of what a task said of its progress, in characters.
const MAX_PROGRESS_CHARS: usize = 200;

/// One line.
#[derive(Clone, Copy, PartialEq, Debug)]
enum HistoryEntry<'a> {
    /// By an attempt.
    Attempt(&'a Attempt),
    /// Without one.
    Unopened(i32),
}

/// Whether retention has removed the history, and has kept the row for its key: something was opened
/// once, and no attempt is left of it.
pub(in crate::commands) const fn is_removed(execution: &Execution, attempts: &[Attempt]) -> bool {
    execution.started_at.is_some() && attempts.is_empty()
}

/// The newest `limit` numbers up to the row's own, `attempts` being the newest `limit` attempts, oldest
/// first. `None`: no number was spent yet, or the history [is removed](is_removed).
pub(in crate::commands) fn table(
    execution: &Execution,
    attempts: &[Attempt],
    limit: i32,
    now: DateTime<Utc>,
) -> Option<Table> {
    if is_removed(execution, attempts) {
        return None;
    }
    let history = history(attempts, execution.attempt, limit);
    if history.is_empty() {
        return None;
    }
    let mut table = Table::new(&["NO", "OUTCOME", "OPENED", "TOOK", "WORKER", "ERROR"]);
    for entry in history {
        table.row(match entry {
            HistoryEntry::Attempt(attempt) => attempt_row(attempt, now),
            HistoryEntry::Unopened(number) => unopened_row(execution, number),
        });
    }
    Some(table)
}

/// Each number below the row's own, `current`, is spent; that one if it has an attempt.
fn history(attempts: &[Attempt], current: i32, limit: i32) -> Vec<HistoryEntry<'_>> {
    let oldest = (current - limit + 1).max(1);
    let mut next = oldest;
    let mut history = Vec::with_capacity(attempts.len());
    for attempt in attempts.iter().skip_while(|attempt| attempt.number < oldest) {
        history.extend((next..attempt.number).map(HistoryEntry::Unopened));
        history.push(HistoryEntry::Attempt(attempt));
        next = attempt.number + 1;
    }
    history.extend((next..current).map(HistoryEntry::Unopened));
    history
}

fn attempt_row(attempt: &Attempt, now: DateTime<Utc>) -> Vec<Cell> {
    let end = attempt.finished_at.unwrap_or(now);
    let worker = attempt.worker_name.clone().unwrap_or_else(|| attempt.worker_id.to_string());
    vec![
        Cell::number(attempt.number.into()),
        outcome(attempt),
        Cell::new(ago(attempt.opened_at, now)),
        Cell::new(duration((end - attempt.opened_at).num_milliseconds())),
        Cell::new(worker),
        Cell::new(describe_attempt(attempt)),
    ]
}

fn unopened_row(execution: &Execution, number: i32) -> Vec<Cell> {
    // The row keeps the reason of its last failure only.
    let last = execution.outcome.as_deref() == Some(UNOPENED) && number + 1 == execution.attempt;
    let reason = execution.error_message.as_deref().filter(|_| last);
    vec![
        Cell::number(number.into()),
        Cell::toned(UNOPENED, Tone::Bad),
        Cell::none(),
        Cell::none(),
        Cell::none(),
        Cell::new(reason.unwrap_or("no worker could open its ticket")),
    ]
}

fn outcome(attempt: &Attempt) -> Cell {
    match attempt.outcome.as_deref() {
        None => Cell::state("running"),
        Some("succeeded") => Cell::toned("succeeded", Tone::Good),
        Some(other) => Cell::toned(other, Tone::Bad),
    }
}

/// How far an attempt is, or had come, as its task said last.
pub(in crate::commands) fn progress(stored: &Value) -> Option<String> {
    // One that is not in the form is of another version; `--json` has it.
    let progress: Progress = serde_json::from_value(stored.clone()).ok()?;
    Some(line(&progress.to_string(), MAX_PROGRESS_CHARS))
}

fn describe_attempt(attempt: &Attempt) -> String {
    // The message of a task's process names its exit code or signal.
    let silent = attempt.error_message.is_none();
    // That of a success is the execution's.
    let succeeded = attempt.outcome.as_deref() == Some("succeeded");
    let result = attempt.result.as_ref().filter(|_| !succeeded);
    let parts = [
        attempt.error_message.clone(),
        attempt.exit_code.filter(|code| silent && *code != 0).map(|code| format!("exit {code}")),
        attempt.signal.filter(|_| silent).map(|signal| format!("signal {signal}")),
        attempt.progress.as_ref().filter(|_| !succeeded).and_then(progress),
        result.map(|result| format!("result {}", line(&result.to_string(), MAX_RESULT_CHARS))),
        attempt.late_outcome.as_ref().map(|late| format!("its worker said later: {late}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn attempt(number: i32) -> Attempt {
        Attempt {
            execution_id: Uuid::nil(),
            number,
            worker_id: Uuid::nil(),
            worker_name: None,
            opened_at: DateTime::UNIX_EPOCH,
            finished_at: None,
            outcome: None,
            error_class: None,
            error_message: None,
            exit_code: None,
            signal: None,
            result: None,
            progress: None,
            late_outcome: None,
            late_at: None,
        }
    }

    /// The numbers of a history, those without an attempt negative.
    fn numbers(opened: &[i32], current: i32, limit: i32) -> Vec<i32> {
        let attempts: Vec<Attempt> = opened.iter().copied().map(attempt).collect();
        history(&attempts, current, limit)
            .iter()
            .map(|entry| match entry {
                HistoryEntry::Attempt(attempt) => attempt.number,
                HistoryEntry::Unopened(number) => -number,
            })
            .collect()
    }

    #[test]
    fn each_number_below_the_rows_own_is_told_with_or_without_an_attempt() {
        assert_eq!(numbers(&[], 1, 9), [] as [i32; 0], "pending, nothing was opened");
        assert_eq!(numbers(&[1], 1, 9), [1], "running");
        assert_eq!(numbers(&[1, 2], 3, 9), [1, 2], "failed");
        assert_eq!(numbers(&[], 2, 9), [-1], "failed, nothing was opened");
        assert_eq!(numbers(&[2, 5], 7, 9), [-1, 2, -3, -4, 5, -6]);
        assert_eq!(numbers(&[1, 3], 3, 9), [1, -2, 3], "requeued and opened");
    }

    #[test]
    fn of_a_long_history_the_newest_numbers_are_told() {
        assert_eq!(numbers(&[4, 5, 6], 6, 3), [4, 5, 6]);
        assert_eq!(numbers(&[4, 5, 6], 7, 3), [5, 6]);
        assert_eq!(numbers(&[4, 5, 8], 9, 3), [-7, 8]);
        assert_eq!(numbers(&[1], i32::MAX, 2), [-(i32::MAX - 1)]);
    }
}
