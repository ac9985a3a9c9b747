//! Which events become lines, and what the lines say.
//!
//! The first execution of each job is told in full, later ones in one line at their end: a reader can
//! follow a story, not a log. An execution that gets into trouble is told in full from there on.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::TimeDelta;
use uuid::Uuid;

use super::changes::What;
use super::rows::Execution;
use super::voice::{Tone, Voice};

/// Less is called "at once".
const AT_ONCE: TimeDelta = TimeDelta::milliseconds(500);

/// Chooses and words the lines.
#[derive(Debug, Default)]
pub(super) struct Teller {
    first: HashMap<String, Uuid>,
    in_full: HashSet<Uuid>,
}

impl Teller {
    /// Says what happened to `execution`, if it is worth a line.
    pub(super) fn tell(&mut self, voice: &Voice, at: Duration, execution: &Execution, what: &What) {
        let id = execution.id;
        if !self.first.contains_key(&execution.job) {
            self.first.insert(execution.job.clone(), id);
            self.in_full.insert(id);
        }
        if matches!(what, What::Parked { .. } | What::Lost { .. } | What::Requeued { .. }) {
            self.in_full.insert(id);
        }
        let (verb, tone) = verb(what);
        let subject = (execution.job.as_str(), id);
        if self.in_full.contains(&id) {
            voice.tell(at, verb, tone, subject, &words(execution, what));
        } else if matches!(what, What::Succeeded { .. }) {
            voice.tell(at, verb, tone, subject, &briefly(execution));
        }
    }
}

fn verb(what: &What) -> (&'static str, Tone) {
    match what {
        What::Fired { .. } => ("fired", Tone::Busy),
        What::Triggered => ("triggered", Tone::Operator),
        What::Ran { .. } => ("ran", Tone::Busy),
        What::Failed { .. } => ("failed", Tone::Warning),
        What::Lost { .. } => ("lost", Tone::Bad),
        What::Retried { .. } => ("retried", Tone::Warning),
        What::Parked { .. } => ("parked", Tone::Bad),
        What::Requeued { .. } => ("requeued", Tone::Operator),
        What::Succeeded { .. } => ("succeeded", Tone::Good),
    }
}

fn words(execution: &Execution, what: &What) -> String {
    match what {
        What::Fired { by, late } => {
            let due = execution.scheduled_for.format("%H:%M:%S");
            format!("due {due} UTC, claimed {} ms later by {by}", late.num_milliseconds())
        }
        What::Triggered => "by `sexton jobs trigger`".to_owned(),
        What::Ran { number, worker } => format!("attempt {number}, on {worker}"),
        What::Failed { number, message, again_in: Some(wait) } => {
            format!("attempt {number}: {message}; again in {}", seconds(*wait))
        }
        What::Failed { number, message, again_in: None } => format!("attempt {number}: {message}"),
        What::Lost { number, worker } => {
            format!("attempt {number}: no sign of life from {worker}, its lease is over")
        }
        What::Retried { number, worker, after, was_lost } => {
            if *was_lost && *after < AT_ONCE {
                return format!("attempt {number}, at once, on {worker}");
            }
            format!("attempt {number}, {} after the failure, on {worker}", seconds(*after))
        }
        What::Parked { attempts } => {
            format!("after {}: waits in the failed queue for an operator", times(*attempts))
        }
        What::Requeued { by } => format!("by {by}; its retries count from zero again"),
        What::Succeeded { attempts: 1, .. } => "at the first attempt".to_owned(),
        What::Succeeded { attempts, .. } => format!("after {}", times(*attempts)),
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
