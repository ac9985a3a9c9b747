//! What must be true of the rows and of the ledger, whatever was struck. Pure.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

pub mod deadlines;
mod violation;

use super::ledger::Entry;
pub use violation::Violation;

/// An attempt, with what came before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptRow {
    /// The execution.
    pub execution: Uuid,
    /// The attempt's number.
    pub number: i32,
    /// When it was opened.
    pub opened_at: DateTime<Utc>,
    /// How it ended, if it has.
    pub outcome: Option<String>,
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
    /// What tasks had done before the rows were read: all of it has its rows.
    pub ledger: Vec<Entry>,
    /// What tasks had done afterwards: the rows say nothing that is not in it.
    pub later: Vec<Entry>,
    /// What the rows say was opened.
    pub attempts: Vec<AttemptRow>,
    /// Whether those are all that ever were, not only the last.
    pub whole: bool,
    /// Executions that have succeeded, and no attempt of theirs has.
    pub unproven: Vec<Uuid>,
    /// Executions that were resolved without a run, since their effect had happened.
    pub resolved: Vec<Uuid>,
    /// What bulks count or record otherwise than their items say.
    pub held: Vec<String>,
    /// The firings of a job that is due every second.
    pub firings: Firings,
    /// What the rows say people did.
    pub actions: Vec<Action>,
    /// Keys that more than one execution of a job has.
    pub double_keys: Vec<String>,
    /// Executions whose parked message was moved by hand: the test requested their requeue.
    pub moved: HashSet<Uuid>,
}

/// What became of the firings of a job that is due every second.
#[derive(Clone, Debug, Default)]
pub struct Firings {
    /// Those that have an execution, skipped or not.
    pub claimed: Vec<DateTime<Utc>>,
    /// The first and the last of each run of firings that is recorded as not executed.
    pub gaps: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    /// All before this one have been decided on.
    pub cursor: Option<DateTime<Utc>>,
}

/// Judges; the violations come sorted.
pub fn judge(evidence: &Evidence) -> Vec<Violation> {
    let mut found: Vec<Violation> = Vec::new();
    found.extend(of_runs(&evidence.ledger));
    found.extend(runs_and_rows(evidence));
    found.extend(effects(evidence));
    found.extend(evidence.held.iter().map(|what| Violation::Held { what: what.clone() }));
    found.extend(holes(&evidence.firings));
    for attempt in &evidence.attempts {
        found.extend(after_the_last(attempt, &evidence.actions));
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
            Entry::End { .. } | Entry::Effect { .. } => {}
        }
    }
    found
}

/// What had had its effect when it failed for good was not run again, and what was resolved had had it.
fn effects(evidence: &Evidence) -> Vec<Violation> {
    let mut had: HashSet<Uuid> = HashSet::new();
    let mut again: HashSet<(Uuid, i32)> = HashSet::new();
    for entry in &evidence.later {
        match entry {
            Entry::Effect { execution, .. } => drop(had.insert(*execution)),
            Entry::Begin { execution, attempt, .. } if had.contains(execution) => {
                again.insert((*execution, *attempt));
            }
            _ => {}
        }
    }
    // After a crash no verify task runs: the effect happens at least once.
    let follows_permanent =
        |row: &&AttemptRow| row.previous.as_ref().is_some_and(|it| it.1 == "permanent");
    let rows =
        evidence.attempts.iter().filter(follows_permanent).map(|row| (row.execution, row.number));
    let mut found: Vec<Violation> = rows
        .filter(|run| again.contains(run))
        .map(|(execution, attempt)| Violation::HappenedTwice { execution, attempt })
        .collect();
    let resolved = evidence.resolved.iter().filter(|id| !had.contains(id));
    found.extend(resolved.map(|id| Violation::NotRun { execution: *id, attempt: None }));
    found
}

/// What the rows say succeeded was run, and what was run stands in the rows.
fn runs_and_rows(evidence: &Evidence) -> Vec<Violation> {
    let ended: HashSet<(Uuid, i32)> = evidence.later.iter().filter_map(end_of).collect();
    let succeeded = evidence.attempts.iter().filter(|attempt| {
        attempt.outcome.as_deref() == Some("succeeded")
            && !ended.contains(&(attempt.execution, attempt.number))
    });
    let mut found: Vec<Violation> = succeeded
        .map(|attempt| Violation::NotRun {
            execution: attempt.execution,
            attempt: Some(attempt.number),
        })
        .collect();
    let unproven = evidence.unproven.iter();
    found.extend(unproven.map(|id| Violation::NotRun { execution: *id, attempt: None }));
    if evidence.whole {
        let opened: HashSet<(Uuid, i32)> =
            evidence.attempts.iter().map(|row| (row.execution, row.number)).collect();
        let begun = evidence.ledger.iter().filter_map(begin_of);
        found.extend(
            begun
                .filter(|run| !opened.contains(run))
                .map(|(execution, attempt)| Violation::Unrecorded { execution, attempt }),
        );
    }
    found
}

const fn begin_of(entry: &Entry) -> Option<(Uuid, i32)> {
    match entry {
        Entry::Begin { execution, attempt, .. } => Some((*execution, *attempt)),
        _ => None,
    }
}

const fn end_of(entry: &Entry) -> Option<(Uuid, i32)> {
    match entry {
        Entry::End { execution, attempt, .. } => Some((*execution, *attempt)),
        _ => None,
    }
}

/// The first hole between the firings that were decided on.
fn holes(firings: &Firings) -> Option<Violation> {
    let mut seconds: Vec<(i64, i64)> = Vec::new();
    seconds.extend(firings.claimed.iter().map(|at| (at.timestamp(), at.timestamp())));
    seconds.extend(firings.gaps.iter().map(|(first, last)| (first.timestamp(), last.timestamp())));
    seconds.sort_unstable();
    let mut next = seconds.first()?.0;
    let cursor = firings.cursor.map(|at| (at.timestamp(), at.timestamp()));
    for (first, last) in seconds.into_iter().chain(cursor) {
        if first > next {
            let firing = DateTime::from_timestamp(next, 0)?;
            return Some(Violation::LostFiring { firing, count: first - next });
        }
        next = next.max(last + 1);
    }
    None
}

/// Nothing follows a success, and nothing a failure that trying again cannot help, unless it was
/// requeued.
fn after_the_last(attempt: &AttemptRow, actions: &[Action]) -> Option<Violation> {
    let (ended, outcome) = attempt.previous.as_ref()?;
    let is_last = match outcome.as_str() {
        "succeeded" => true,
        "permanent" => !was_requeued(attempt, *ended, actions),
        _ => false,
    };
    is_last.then(|| Violation::RanAfterItsEnd {
        execution: attempt.execution,
        attempt: attempt.number,
        action: format!("attempt that ended as {outcome}"),
    })
}

/// Whether it was requeued between an instant and the open.
fn was_requeued(attempt: &AttemptRow, since: DateTime<Utc>, actions: &[Action]) -> bool {
    actions.iter().any(|action| {
        action.execution == attempt.execution
            && ["requeue", "hand_requeue"].contains(&action.action.as_str())
            && (since..=attempt.opened_at).contains(&action.at)
    })
}

fn early(attempt: &AttemptRow, actions: &[Action]) -> Option<Violation> {
    let (ended, outcome) = attempt.previous.as_ref()?;
    let due = *ended + attempt.retry_delay;
    let requeued = was_requeued(attempt, *ended, actions);
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
