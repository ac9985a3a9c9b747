//! Decides about messages in the failed queue.
//!
//! The sweep takes some messages, *then* reads their rows, and this table decides. It removes only messages that
//! contradict their row; unknown messages always stay.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use crate::id::{AttemptNumber, ExecutionId};
use crate::queue_incident::QueueIncidentKind;
use crate::state::State;

/// The broker's reasons for moving a message from a main queue here: too many deliveries without an answer, or a
/// rejection by a manual tool.
const PARKED_BY_BROKER: [&str; 2] = ["delivery_limit", "rejected"];

/// The row behind a parked message, as far as the sweep needs it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ParkedRow {
    /// The row's state.
    pub state: State,
    /// The row's attempt number.
    pub attempt: AttemptNumber,
}

/// The decision about a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SweepDecision {
    /// It belongs here.
    Keep,
    /// It does not.
    Remove,
    /// Its execution is failed with this class, which takes the message's number: the execution's own message has the
    /// next one. This one is removed.
    Fail(&'static str),
    /// It is the ticket of a waiting execution, which a policy has taken out of its main queue: the row's ticket
    /// becomes unpublished again. This one is removed.
    Republish,
}

/// Judges a message that names an attempt. `row` was read after the message was taken; `seen` says that a copy of it
/// was kept in this pass; `last_death` is the broker's dead-letter reason, if it moved the message here out of a main
/// queue. (Tools copy the reason from a delay queue, which does not count.)
///
/// A waiting row with the message's number has two possible pasts. Either the broker parked the ticket, or a policy
/// made it expire, and the row does not know it yet. Or somebody requeued the execution, and the message is the
/// outdated parked copy: its ticket is unpublished or on its way in the main queue.
pub fn judge_message(
    attempt: AttemptNumber,
    row: Option<ParkedRow>,
    last_death: Option<&str>,
    seen: bool,
) -> SweepDecision {
    let Some(row) = row else { return SweepDecision::Keep };
    if row.attempt != attempt {
        return SweepDecision::Remove;
    }
    let death = PARKED_BY_BROKER.into_iter().find(|reason| last_death == Some(*reason));
    match (row.state, death) {
        (State::Failed, _) if !seen => SweepDecision::Keep,
        (State::Pending | State::Retrying, Some(reason)) if !seen => SweepDecision::Fail(reason),
        (State::Pending | State::Retrying, None)
            if last_death.and_then(QueueIncidentKind::from_dead_letter_reason).is_some() =>
        {
            SweepDecision::Republish
        }
        _ => SweepDecision::Remove,
    }
}

/// The identity of a message that names an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MessageAttempt<'a> {
    /// The execution.
    pub id: ExecutionId,
    /// The attempt.
    pub attempt: AttemptNumber,
    /// The broker's dead-letter reason, if it moved the message here.
    pub last_death: Option<&'a str>,
}

/// A row behind some of the messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KnownRow {
    /// The row.
    pub row: ParkedRow,
    /// An earlier batch of the same pass has kept a message of it.
    pub kept: bool,
}

/// Judges messages that were taken together, in their order, by rows that were all read after the last of them was
/// taken; `None`: no row matches. Of the messages of one row one is kept.
pub fn judge_batch<S: BuildHasher>(
    messages: &[Option<MessageAttempt<'_>>],
    rows: &HashMap<ExecutionId, KnownRow, S>,
) -> Vec<Option<SweepDecision>> {
    let mut kept_ids = HashSet::new();
    let mut one = |claim: MessageAttempt<'_>| {
        let known = rows.get(&claim.id)?;
        let seen = known.kept || kept_ids.contains(&claim.id);
        let verdict = judge_message(claim.attempt, Some(known.row), claim.last_death, seen);
        if verdict == SweepDecision::Keep {
            kept_ids.insert(claim.id);
        }
        Some(verdict)
    };
    messages.iter().map(|claim| claim.and_then(&mut one)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: i32) -> AttemptNumber {
        AttemptNumber::new(number).unwrap()
    }

    #[test]
    fn the_table_of_the_failed_queue() {
        let row = |state, attempt| Some(ParkedRow { state, attempt: number(attempt) });
        let limit = Some("delivery_limit");
        let table = [
            // The row is failed with that attempt: once.
            (row(State::Failed, 2), None, false, SweepDecision::Keep),
            (row(State::Failed, 2), limit, false, SweepDecision::Keep),
            (row(State::Failed, 2), None, true, SweepDecision::Remove),
            // The broker parked a waiting ticket.
            (row(State::Pending, 2), limit, false, SweepDecision::Fail("delivery_limit")),
            (row(State::Retrying, 2), limit, false, SweepDecision::Fail("delivery_limit")),
            (row(State::Pending, 2), Some("rejected"), false, SweepDecision::Fail("rejected")),
            // A requeue: the parked copy is outdated.
            (row(State::Pending, 2), None, false, SweepDecision::Remove),
            // A policy's time limit or length limit.
            (row(State::Pending, 2), Some("expired"), false, SweepDecision::Republish),
            (row(State::Retrying, 2), Some("maxlen"), false, SweepDecision::Republish),
            (row(State::Pending, 3), Some("expired"), false, SweepDecision::Remove),
            (row(State::Running, 2), Some("expired"), false, SweepDecision::Remove),
            (row(State::Failed, 2), Some("expired"), false, SweepDecision::Keep),
            // Another number, or another state.
            (row(State::Failed, 3), None, false, SweepDecision::Remove),
            (row(State::Failed, 1), None, false, SweepDecision::Remove),
            (row(State::Pending, 3), limit, false, SweepDecision::Remove),
            (row(State::Running, 2), limit, false, SweepDecision::Remove),
            (row(State::Discarded, 2), None, false, SweepDecision::Remove),
            (row(State::Succeeded, 2), None, false, SweepDecision::Remove),
            (row(State::Cancelled, 2), None, false, SweepDecision::Remove),
            // No row: perhaps a restored backup has lost it.
            (None, limit, false, SweepDecision::Keep),
            (None, None, true, SweepDecision::Keep),
        ];
        for (row, last_death, seen, expected) in table {
            let found = judge_message(number(2), row, last_death, seen);
            assert_eq!(found, expected, "{row:?} {last_death:?} {seen}");
        }
    }

    #[test]
    fn of_the_messages_of_a_row_one_is_kept_whether_they_come_together_or_not() {
        let [first, second, nobody] = [1, 2, 3].map(|n| ExecutionId::new(uuid::Uuid::from_u128(n)));
        let claim =
            |id, attempt| Some(MessageAttempt { id, attempt: number(attempt), last_death: None });
        let row = ParkedRow { state: State::Failed, attempt: number(2) };
        let rows = |kept| {
            let (known, new) = (KnownRow { row, kept }, KnownRow { row, kept: false });
            HashMap::from([(first, known), (second, new)])
        };
        let messages = [
            claim(first, 1),
            claim(first, 2),
            claim(nobody, 1),
            claim(second, 2),
            None,
            claim(first, 2),
        ];
        let (keep, remove) = (Some(SweepDecision::Keep), Some(SweepDecision::Remove));
        let found = judge_batch(&messages, &rows(false));
        assert_eq!(found, [remove, keep, None, keep, None, remove]);
        let found = judge_batch(&messages, &rows(true));
        assert_eq!(found, [remove, remove, None, keep, None, remove]);
    }
}
