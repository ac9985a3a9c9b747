//! Decides about a ticket that opened no attempt.
//!
//! A worker asks PostgreSQL to open `(execution, n)`. If that opens no row, it reads the row without a lock, and this
//! table decides. No decision is a `nack`, because a message that returns to the head of its queue loops.

use std::time::Duration;

use crate::id::AttemptNumber;
use crate::state::State;

/// The row as the unlocked read saw it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExecutionRow {
    /// The row's state.
    pub state: State,
    /// The row's attempt number.
    pub attempt: AttemptNumber,
    /// Whether the row has this worker's token.
    pub mine: bool,
    /// How long until the next attempt is due, by the database's clock; zero: due.
    pub due_in: Duration,
    /// How long it has been due, by the database's clock.
    pub overdue: Duration,
    /// Whether this worker's catalogue has the row's task type.
    pub offered: bool,
    /// Whether it waits until its job is free; its ticket is published then.
    pub waits: bool,
}

/// How long a ticket whose task type a worker lacks stays away before it is tried again, perhaps by a worker that has
/// it.
pub const UNOFFERED_RETRY_DELAY: Duration = Duration::from_secs(30);
/// How long such retries continue after the ticket was due.
pub const UNOFFERED_TIMEOUT: Duration = Duration::from_hours(1);

/// The skip reason of an execution whose first ticket comes later than the job's `stale_after` allows. The open
/// decides it, in its statement and by the database's clock.
pub const STALE_REASON: &str = "stale";

/// The decision.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OpenDecision {
    /// This very request opened it, and its answer was lost: run it.
    Run,
    /// Too early (because of the broker's clock, or a manual move): to a delay queue for the remaining time, ack. Not
    /// counted. A worker keeps a ticket that is due within milliseconds, as one of a firing claimed before it is due.
    Wait(Duration),
    /// Another transaction held the row's lock for a moment: open again in the next round.
    Retry,
    /// Opened already, whether its worker lives or not. The rescuer ends the attempt if its lease is not renewed; the
    /// worker with this ticket has not watched the lease. Ack.
    AlreadyOpened,
    /// A duplicate, or an older ticket: ack, count.
    Stale,
    /// A ticket that the database has forgotten (a restored backup): ack, count, warn. The row decides.
    Future,
    /// The message names an execution that does not exist: park it as it is, with the reason.
    UnknownExecution,
    /// No worker with this task type came for an hour: fail the execution, ack.
    Unoffered,
    /// Somebody moved a parked message here, and this worker lacks its task type: back to the failed queue as it is,
    /// ack.
    Repark,
}

/// Decides about a ticket with number `ticket` that opened nothing.
pub fn decide_unopened(ticket: AttemptNumber, row: Option<&ExecutionRow>) -> OpenDecision {
    let Some(row) = row else { return OpenDecision::UnknownExecution };
    if row.state.is_final() || row.state == State::Discarded || row.attempt > ticket {
        return OpenDecision::Stale;
    }
    if row.attempt < ticket {
        return OpenDecision::Future;
    }
    match row.state {
        State::Running if row.mine => OpenDecision::Run,
        State::Running => OpenDecision::AlreadyOpened,
        _ if row.waits => OpenDecision::Stale,
        _ if row.due_in > Duration::ZERO => OpenDecision::Wait(row.due_in),
        State::Failed if !row.offered => OpenDecision::Repark,
        _ if !row.offered && row.overdue >= UNOFFERED_TIMEOUT => OpenDecision::Unoffered,
        _ if !row.offered => OpenDecision::Wait(UNOFFERED_RETRY_DELAY),
        _ => OpenDecision::Retry,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(state: State, attempt: i32) -> ExecutionRow {
        let attempt = AttemptNumber::new(attempt).unwrap();
        ExecutionRow {
            state,
            attempt,
            mine: false,
            due_in: Duration::ZERO,
            overdue: Duration::ZERO,
            offered: true,
            waits: false,
        }
    }

    fn ask(row: ExecutionRow) -> OpenDecision {
        decide_unopened(AttemptNumber::new(2).unwrap(), Some(&row))
    }

    #[test]
    fn a_running_attempt_is_its_own_token_s_alone() {
        let running = row(State::Running, 2);
        assert_eq!(ask(ExecutionRow { mine: true, ..running }), OpenDecision::Run);
        assert_eq!(ask(running), OpenDecision::AlreadyOpened);
    }

    #[test]
    fn a_row_with_the_same_number_waits_or_is_asked_again() {
        for state in [State::Pending, State::Retrying, State::Failed] {
            assert_eq!(ask(row(state, 2)), OpenDecision::Retry);
            let remaining = Duration::from_secs(3);
            assert_eq!(
                ask(ExecutionRow { due_in: remaining, ..row(state, 2) }),
                OpenDecision::Wait(remaining)
            );
        }
    }

    #[test]
    fn a_copy_of_the_ticket_of_who_waits_for_its_job_is_dropped() {
        assert_eq!(
            ask(ExecutionRow { waits: true, ..row(State::Pending, 2) }),
            OpenDecision::Stale
        );
    }

    #[test]
    fn a_task_type_nobody_offers_is_tried_for_an_hour_and_then_fails() {
        let foreign = ExecutionRow { offered: false, ..row(State::Pending, 2) };
        assert_eq!(ask(foreign), OpenDecision::Wait(UNOFFERED_RETRY_DELAY));
        assert_eq!(
            ask(ExecutionRow { overdue: UNOFFERED_TIMEOUT, ..foreign }),
            OpenDecision::Unoffered
        );
        // A parked message that was moved by hand goes back; the execution stays as it was.
        assert_eq!(ask(ExecutionRow { state: State::Failed, ..foreign }), OpenDecision::Repark);
        // "Too early" comes first, so that no worker tries it again every half minute.
        let remaining = Duration::from_mins(10);
        assert_eq!(
            ask(ExecutionRow { due_in: remaining, ..foreign }),
            OpenDecision::Wait(remaining)
        );
    }

    #[test]
    fn overtaken_and_ended_tickets_are_stale_and_later_ones_from_the_future() {
        for state in State::ALL {
            let overtaken = ask(row(state, 3));
            assert_eq!(overtaken, OpenDecision::Stale, "{state:?}");
            let forgotten = ask(row(state, 1));
            let ended = state.is_final() || state == State::Discarded;
            assert_eq!(forgotten, if ended { OpenDecision::Stale } else { OpenDecision::Future });
            if ended {
                assert_eq!(ask(row(state, 2)), OpenDecision::Stale);
            }
        }
        assert_eq!(decide_unopened(AttemptNumber::FIRST, None), OpenDecision::UnknownExecution);
    }
}
