//! Which events become lines, and their texts.
//!
//! The first execution of each job is shown in full, later ones in one line at their end, so that a
//! reader can follow. An execution that gets into trouble is shown in full from there on.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::TimeDelta;
use uuid::Uuid;

use super::changes::EventKind;
use super::output::{Output, Tone};
use super::rows::Execution;

/// Anything shorter is called "at once".
const IMMEDIATE: TimeDelta = TimeDelta::milliseconds(500);

/// Chooses the events and writes their lines.
#[derive(Debug, Default)]
pub(super) struct EventPrinter {
    first: HashMap<String, Uuid>,
    in_full: HashSet<Uuid>,
}

impl EventPrinter {
    /// Prints what happened to `execution`, if it is worth a line.
    pub(super) fn print_event(
        &mut self,
        output: &Output,
        at: Duration,
        execution: &Execution,
        what: &EventKind,
    ) {
        let id = execution.id;
        if !self.first.contains_key(&execution.job) {
            self.first.insert(execution.job.clone(), id);
            self.in_full.insert(id);
        }
        if matches!(
            what,
            EventKind::Parked { .. } | EventKind::Lost { .. } | EventKind::Requeued { .. }
        ) {
            self.in_full.insert(id);
        }
        let (verb, tone) = verb(what);
        let subject = (execution.job.as_str(), id);
        if self.in_full.contains(&id) {
            output.print_event(at, verb, tone, subject, &words(execution, what));
        } else if matches!(what, EventKind::Succeeded { .. }) {
            output.print_event(at, verb, tone, subject, &briefly(execution));
        }
    }
}

fn verb(what: &EventKind) -> (&'static str, Tone) {
    match what {
        EventKind::Fired { .. } => ("fired", Tone::Busy),
        EventKind::Triggered => ("triggered", Tone::Operator),
        EventKind::Ran { .. } => ("ran", Tone::Busy),
        EventKind::Failed { .. } => ("failed", Tone::Warning),
        EventKind::Lost { .. } => ("lost", Tone::Bad),
        EventKind::Retried { .. } => ("retried", Tone::Warning),
        EventKind::Parked { .. } => ("parked", Tone::Bad),
        EventKind::Requeued { .. } => ("requeued", Tone::Operator),
        EventKind::Succeeded { .. } => ("succeeded", Tone::Good),
    }
}

fn words(execution: &Execution, what: &EventKind) -> String {
    match what {
        EventKind::Fired { by, late } => {
            let due = execution.scheduled_for.format("%H:%M:%S");
            let word = if *late < TimeDelta::zero() { "earlier" } else { "later" };
            format!("due {due} UTC, claimed {} ms {word} by {by}", late.num_milliseconds().abs())
        }
        EventKind::Triggered => "by `sexton jobs trigger`".to_owned(),
        EventKind::Ran { number, worker } => format!("attempt {number}, on {worker}"),
        EventKind::Failed { number, message, again_in: Some(wait) } => {
            format!("attempt {number}: {message}; again in {}", seconds(*wait))
        }
        EventKind::Failed { number, message, again_in: None } => {
            format!("attempt {number}: {message}")
        }
        EventKind::Lost { number, worker } => {
            format!("attempt {number}: no sign of life from {worker}, its lease is over")
        }
        EventKind::Retried { number, worker, after, was_lost } => {
            if *was_lost && *after < IMMEDIATE {
                return format!("attempt {number}, at once, on {worker}");
            }
            format!("attempt {number}, {} after the failure, on {worker}", seconds(*after))
        }
        EventKind::Parked { attempts } => {
            format!("after {}: waits in the failed queue for an operator", times(*attempts))
        }
        EventKind::Requeued { by } => format!("by {by}; its retries count from zero again"),
        EventKind::Succeeded { attempts: 1, .. } => "at the first attempt".to_owned(),
        EventKind::Succeeded { attempts, .. } => format!("after {}", times(*attempts)),
    }
}

fn briefly(execution: &Execution) -> String {
    let due = execution.scheduled_for.format("%H:%M:%S");
    let by = execution.claimer();
    let on = execution.attempts.last().map(|last| last.worker.as_str()).unwrap_or_default();
    let tries = times(execution.attempts.len());
    format!("due {due} UTC, claimed by {by}, {tries}, on {on}")
}

fn times(attempts: usize) -> String {
    if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") }
}

fn seconds(span: TimeDelta) -> String {
    format!("{:.1} s", span.num_milliseconds() as f64 / 1000.0)
}
