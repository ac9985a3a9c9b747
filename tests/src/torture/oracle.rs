//! What must be true of the rows and of the ledger, whatever was struck. Pure.

use std::collections::{HashMap, HashSet};
use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::ledger::Entry;

/// An attempt, with what came before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptRow {
    /// The execution.
    pub execution: Uuid,
    /// The attempt's number.
    pub number: i32,
    /// When it was opened.
    pub opened_at: DateTime<Utc>,
    /// When and how the attempt before it ended, if it has.
    pub previous: Option<(DateTime<Utc>, String)>,
    /// The job's wait before a retry.
    pub retry_delay: TimeDelta,
}

/// What an operator did, or a hand that moved a parked message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Action {
    /// The execution.
    pub execution: Uuid,
    /// `requeue`, `hand_requeue`, `cancel`, `discard` and the like.
    pub action: String,
    /// When.
    pub at: DateTime<Utc>,
}

/// All that is judged.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// What tasks did.
    pub ledger: Vec<Entry>,
    /// What the rows say was opened.
    pub attempts: Vec<AttemptRow>,
    /// What the rows say people did.
    pub actions: Vec<Action>,
    /// Keys that more than one execution of a job has.
    pub double_keys: Vec<String>,
    /// Executions whose parked message was moved by hand: their requeue was asked for.
    pub moved: HashSet<Uuid>,
}

/// A promise that was not kept.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Violation {
    /// Two runs of an idempotency key were alive at once.
    Overlap {
        /// The idempotency key.
        key: String,
        /// The attempt that began second.
        attempt: i32,
    },
    /// An attempt's task was begun twice.
    OpenedTwice {
        /// The idempotency key.
        key: String,
        /// The attempt.
        attempt: i32,
    },
    /// An attempt was opened before it was due.
    Early {
        /// The execution.
        execution: Uuid,
        /// The attempt.
        attempt: i32,
        /// By so much.
        milliseconds: i64,
    },
    /// A failed execution ran again, and nobody had asked for it.
    Unasked {
        /// The execution.
        execution: Uuid,
    },
    /// An execution ran after an operator had ended it.
    RanAfterItsEnd {
        /// The execution.
        execution: Uuid,
        /// The attempt.
        attempt: i32,
        /// What the operator did.
        action: String,
    },
    /// Two executions of a job have one key.
    DoubleKey {
        /// The key.
        key: String,
    },
    /// An execution came to no end.
    Lost {
        /// The execution.
        execution: Uuid,
        /// What the row says at last.
        row: String,
        /// What was struck.
        fault: String,
    },
    /// The failed rows and the parked messages are not the same.
    Unparked {
        /// Which rows and messages.
        what: String,
    },
    /// A program did not come back to work.
    NotReady {
        /// Which, and what it says.
        what: String,
    },
}

impl Violation {
    /// Which promise it is that was not kept, in a word or two; its text begins with it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Overlap { .. } => "overlapping runs",
            Self::OpenedTwice { .. } => "opened twice",
            Self::Early { .. } => "opened early",
            Self::Unasked { .. } => "ran unasked",
            Self::RanAfterItsEnd { .. } => "ran after its end",
            Self::DoubleKey { .. } => "claimed twice",
            Self::Lost { .. } => "lost",
            Self::Unparked { .. } => "parked otherwise",
            Self::NotReady { .. } => "did not come back",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.kind())?;
        match self {
            Self::Overlap { key, attempt } => {
                write!(f, "attempt {attempt} of {key} began while another ran")
            }
            Self::OpenedTwice { key, attempt } => {
                write!(f, "attempt {attempt} of {key} was begun twice")
            }
            Self::Early { execution, attempt, milliseconds } => {
                write!(f, "attempt {attempt} of {execution}, {milliseconds} ms before it was due")
            }
            Self::Unasked { execution } => {
                write!(f, "{execution} had failed and was opened, and nobody moved it")
            }
            Self::RanAfterItsEnd { execution, attempt, action } => {
                write!(f, "attempt {attempt} of {execution} was opened after a {action}")
            }
            Self::DoubleKey { key } => {
                write!(f, "two executions have the key {key}")
            }
            Self::Lost { execution, row, fault } => {
                write!(f, "{execution} came to no end after {fault}: {row}")
            }
            Self::Unparked { what } => write!(f, "failed rows and parked messages differ: {what}"),
            Self::NotReady { what } => f.write_str(what),
        }
    }
}

/// Judges; the violations come sorted.
pub fn judge(evidence: &Evidence) -> Vec<Violation> {
    let mut found: Vec<Violation> = Vec::new();
    found.extend(of_runs(&evidence.ledger));
    for attempt in &evidence.attempts {
        found.extend(early(attempt, &evidence.actions));
        found.extend(after_its_end(attempt, &evidence.actions));
    }
    let unasked = evidence.actions.iter().filter(|action| {
        action.action == "hand_requeue" && !evidence.moved.contains(&action.execution)
    });
    found.extend(unasked.map(|action| Violation::Unasked { execution: action.execution }));
    let double = evidence.double_keys.iter();
    found.extend(double.map(|key| Violation::DoubleKey { key: key.clone() }));
    found.sort();
    found.dedup();
    found
}

fn of_runs(ledger: &[Entry]) -> Vec<Violation> {
    let mut begun: HashMap<(&str, i32), usize> = HashMap::new();
    let mut found = Vec::new();
    for entry in ledger {
        match entry {
            Entry::Begin { key, attempt, .. } => {
                let times = begun.entry((key, *attempt)).or_default();
                *times += 1;
                if *times == 2 {
                    found.push(Violation::OpenedTwice { key: key.clone(), attempt: *attempt });
                }
            }
            Entry::Overlap { key, attempt } => {
                found.push(Violation::Overlap { key: key.clone(), attempt: *attempt });
            }
            Entry::End { .. } => {}
        }
    }
    found
}

fn early(attempt: &AttemptRow, actions: &[Action]) -> Option<Violation> {
    let (ended, outcome) = attempt.previous.as_ref()?;
    let due = *ended + attempt.retry_delay;
    let requeued = actions.iter().any(|action| {
        action.execution == attempt.execution
            && ["requeue", "hand_requeue"].contains(&action.action.as_str())
            && (*ended..=attempt.opened_at).contains(&action.at)
    });
    (outcome == "error" && !requeued && attempt.opened_at < due).then(|| Violation::Early {
        execution: attempt.execution,
        attempt: attempt.number,
        milliseconds: (due - attempt.opened_at).num_milliseconds(),
    })
}

/// A restore takes a discard back, nothing a cancel.
fn after_its_end(attempt: &AttemptRow, actions: &[Action]) -> Option<Violation> {
    let of_it = || actions.iter().filter(|action| action.execution == attempt.execution);
    let end = of_it().find(|end| {
        let taken_back = of_it().any(|action| {
            action.action == "restore" && (end.at..=attempt.opened_at).contains(&action.at)
        });
        ["cancel", "discard"].contains(&end.action.as_str())
            && end.at < attempt.opened_at
            && !(taken_back && end.action == "discard")
    })?;
    Some(Violation::RanAfterItsEnd {
        execution: attempt.execution,
        attempt: attempt.number,
        action: end.action.clone(),
    })
}

#[cfg(test)]
mod tests;
