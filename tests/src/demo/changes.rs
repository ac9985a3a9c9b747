//! The events between two readings of an execution. Pure: rows in, events out.

use chrono::{DateTime, TimeDelta, Utc};

use super::rows::{Attempt, Ended, Execution};

/// Something that happened to an execution, and when, by the database's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) at: DateTime<Utc>,
    pub(super) what: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventKind {
    /// A scheduler has claimed a firing; `late` after it was due.
    Fired { by: String, late: TimeDelta },
    /// A person or program has triggered the job.
    Triggered,
    /// A worker has opened an attempt that follows no failed one.
    Ran { number: i32, worker: String },
    /// An attempt has failed; `again_in` is the wait before its retry.
    Failed { number: i32, message: String, again_in: Option<TimeDelta> },
    /// An attempt's worker is gone.
    Lost { number: i32, worker: String },
    /// A worker has opened an attempt, `after` the one before had failed.
    Retried { number: i32, worker: String, after: TimeDelta, was_lost: bool },
    /// All attempts are used up: its ticket is in the failed queue.
    Parked { attempts: usize },
    /// An operator has requeued it.
    Requeued { by: String },
    /// It has succeeded.
    Succeeded { attempts: usize, was_requeued: bool, was_lost: bool },
}

/// The events since the execution was like `before` (`None`: it did not exist), in the order in
/// which they happened.
pub(super) fn changes(before: Option<&Execution>, after: &Execution) -> Vec<Event> {
    let mut events = Vec::new();
    if before.is_none() {
        events.push(fired(after));
    }
    for (index, attempt) in after.attempts.iter().enumerate() {
        let known = before.and_then(|before| before.attempts.get(index));
        if known.is_none() {
            events.push(opened(after, index));
        }
        if known.is_none_or(|known| known.ended.is_none()) {
            let ended = attempt.ended.as_ref();
            events.extend(ended.and_then(|ended| failed(after, attempt, ended)));
        }
    }
    let requeues_known = before.map_or(0, |before| before.requeued_at.len());
    for at in after.requeued_at.iter().skip(requeues_known) {
        let by = after.requeued_by.clone().unwrap_or_default();
        events.push(Event { at: *at, what: EventKind::Requeued { by } });
    }
    if before.is_none_or(|before| before.state != after.state) {
        events.extend(arrived(after));
    }
    // One statement wrote all events of the same instant: the order of appearance is the logical one.
    events.sort_by_key(|event| event.at);
    events
}

fn fired(execution: &Execution) -> Event {
    let what = if execution.is_scheduled {
        let late = execution.claimed_at - execution.scheduled_for;
        EventKind::Fired { by: execution.claimer().to_owned(), late }
    } else {
        EventKind::Triggered
    };
    Event { at: execution.claimed_at, what }
}

fn opened(execution: &Execution, index: usize) -> Event {
    let attempt = &execution.attempts[index];
    let before = index.checked_sub(1).and_then(|index| execution.attempts[index].ended.as_ref());
    let was_put_back = |since| {
        let meanwhile = since..=attempt.opened_at;
        execution.requeued_at.iter().any(|requeue| meanwhile.contains(requeue))
    };
    let (number, worker) = (attempt.number, attempt.worker.clone());
    let what = match before {
        Some(ended) if !was_put_back(ended.at) => EventKind::Retried {
            number,
            worker,
            after: attempt.opened_at - ended.at,
            was_lost: is_lost(ended),
        },
        _ => EventKind::Ran { number, worker },
    };
    Event { at: attempt.opened_at, what }
}

fn failed(execution: &Execution, attempt: &Attempt, ended: &Ended) -> Option<Event> {
    let number = attempt.number;
    let is_last = execution.attempts.last().is_some_and(|last| last.number == number);
    let again_at = execution.next_attempt_at.filter(|_| is_last && execution.state == "retrying");
    let what = if is_lost(ended) {
        EventKind::Lost { number, worker: attempt.worker.clone() }
    } else if ended.outcome == "succeeded" {
        return None;
    } else {
        let message = ended.message.clone().unwrap_or_else(|| ended.outcome.clone());
        EventKind::Failed { number, message, again_in: again_at.map(|again| again - ended.at) }
    };
    Some(Event { at: ended.at, what })
}

fn arrived(execution: &Execution) -> Option<Event> {
    let attempts = execution.attempts.len();
    let what = match execution.state.as_str() {
        "failed" => EventKind::Parked { attempts },
        "succeeded" => EventKind::Succeeded {
            attempts,
            was_requeued: !execution.requeued_at.is_empty(),
            was_lost: execution.attempts.iter().any(|a| a.ended.as_ref().is_some_and(is_lost)),
        },
        _ => return None,
    };
    Some(Event { at: execution.finished_at?, what })
}

fn is_lost(ended: &Ended) -> bool {
    ended.outcome == "lost"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(1_765_000_000_000 + ms).unwrap()
    }

    fn attempt(number: i32, opened: i64, ended: Option<(i64, &str)>) -> Attempt {
        let ended = ended.map(|(ms, outcome)| Ended {
            at: at(ms),
            outcome: outcome.to_owned(),
            message: Some("exit status 1".to_owned()),
        });
        Attempt { number, worker: format!("worker-{number}"), opened_at: at(opened), ended }
    }

    fn claimed() -> Execution {
        Execution {
            id: uuid::Uuid::nil(),
            job: "demo.print".to_owned(),
            is_scheduled: true,
            scheduled_for: at(0),
            claimed_by: "scheduler-1:42".to_owned(),
            claimed_at: at(7),
            state: "pending".to_owned(),
            next_attempt_at: Some(at(7)),
            finished_at: None,
            attempts: Vec::new(),
            requeued_at: Vec::new(),
            requeued_by: None,
        }
    }

    fn names(events: &[Event]) -> String {
        let name = |event: &Event| {
            format!("{:?}", event.what).chars().take_while(char::is_ascii_alphabetic).collect()
        };
        events.iter().map(name).collect::<Vec<String>>().join(" ")
    }

    #[test]
    fn a_whole_execution_read_at_once_yields_its_events_in_order() {
        let mut execution = claimed();
        execution.attempts = vec![
            attempt(1, 10, Some((20, "error"))),
            attempt(2, 1020, Some((1030, "error"))),
            attempt(3, 5000, Some((9000, "lost"))),
            attempt(4, 9001, Some((9100, "succeeded"))),
        ];
        execution.requeued_at = vec![at(4000)];
        execution.state = "succeeded".to_owned();
        execution.finished_at = Some(at(9100));
        let events = changes(None, &execution);
        assert_eq!(
            names(&events),
            "Fired Ran Failed Retried Failed Requeued Ran Lost Retried Succeeded"
        );
        let after = TimeDelta::seconds(1);
        let retried =
            EventKind::Retried { number: 2, worker: "worker-2".into(), after, was_lost: false };
        assert_eq!(events[3].what, retried);
        let late = TimeDelta::milliseconds(7);
        assert_eq!(events[0].what, EventKind::Fired { by: "scheduler-1".into(), late });
        assert_eq!(changes(Some(&execution), &execution), []);
    }

    #[test]
    fn each_read_yields_only_new_events() {
        let first = claimed();
        let mut second = claimed();
        second.attempts = vec![attempt(1, 10, None)];
        second.state = "running".to_owned();
        let mut third = second.clone();
        third.attempts = vec![attempt(1, 10, Some((20, "error")))];
        third.state = "failed".to_owned();
        third.finished_at = Some(at(20));
        let mut fourth = third.clone();
        fourth.requeued_at = vec![at(30)];
        fourth.state = "pending".to_owned();
        assert_eq!(names(&changes(Some(&first), &second)), "Ran");
        assert_eq!(names(&changes(Some(&second), &third)), "Failed Parked");
        assert_eq!(names(&changes(Some(&third), &fourth)), "Requeued");
        let triggered = Execution { is_scheduled: false, ..first };
        assert_eq!(names(&changes(None, &triggered)), "Triggered");
    }
}
