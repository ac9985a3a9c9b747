//! The statements of `shared/store`, on the modelled row.
//!
//! Each is atomic, as in PostgreSQL, and uses the real decisions: every change of state goes through
//! [`sexton_model::state::next`], the end of an attempt through [`sexton_model::retry::decide`]. A condition that is
//! a fence is checked only while that fence is in place.

use std::time::Duration;

use sexton_model::id::AttemptNumber;
use sexton_model::open::{self, OpenDecision};
use sexton_model::retry::{self, Decision, RetryPolicy, Usage};
use sexton_model::state::{Cause, State, next};

use crate::protocol::fences::{Fence, Fences, Part};
use crate::protocol::world::{
    Ending, HeldMessage, Holder, Number, Queue, Row, SafetyViolation, Scheduler, Step, Sweep,
    UsedBudgets, World,
};

/// The numbers that represent [`Number`] in a real decision.
const OVERTAKEN: AttemptNumber = AttemptNumber::FIRST;
const CURRENT: AttemptNumber = AttemptNumber::FIRST.next();
/// Any wait that is not zero.
const SOON: Duration = Duration::from_secs(30);

/// One retry after an error, a timeout and a crash each: enough for every branch of the decision.
const POLICY: RetryPolicy = RetryPolicy {
    max_retries: 1,
    delay: SOON,
    multiplier: 1.0,
    max_delay: SOON,
    jitter: 0.0,
    max_timeouts: 2,
    max_crashes: 2,
    max_snoozes: 2,
    permanent: Vec::new(),
};

/// Returns a number for the real decisions; the row's own is the second.
pub(crate) fn real(number: Number) -> AttemptNumber {
    match number {
        Number::Current => CURRENT,
        Number::Overtaken => OVERTAKEN,
    }
}

/// The result of an open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opening {
    /// The attempt is open.
    Opened,
    /// The execution was stale, and is skipped.
    Skipped,
    /// No row was changed.
    Nothing,
}

impl Row {
    /// `lease_until = now() + lease`, a renewal that no observer has seen before.
    pub(crate) const fn renewed(&mut self) {
        self.lease_over = false;
        self.clock_ahead = false;
    }
}

impl World {
    /// `state = …, rev = rev + 1` for `cause`, if the table has such a transition. `false`: the row is unchanged.
    fn change(&mut self, cause: Cause, fences: Fences) -> bool {
        let from = self.row.state;
        let to = match next(from, cause) {
            Some(to) => to,
            None if fences.has(Fence::State) => return false,
            None => forced(cause),
        };
        if from.is_final() && to != from {
            self.wrong = Some(SafetyViolation::FinalLeft);
        }
        self.row.state = to;
        self.row.marked_in_pass = false;
        self.row.long_due = false;
        self.row.stale = false;
        if !to.has_ticket() {
            self.row.unpublished = false;
            self.row.held = false;
            self.row.due = true;
        }
        if to != State::Running {
            self.row.holder = Holder::Nobody;
            self.row.renewed();
            // The next requeue writes them before any statement reads them.
            if to != State::Retrying && to != State::Pending {
                self.row.used = UsedBudgets::default();
            }
            self.row.cancel = false;
        }
        self.new_revision();
        true
    }

    fn new_revision(&mut self) {
        for worker in &mut self.workers {
            match &mut worker.step {
                Step::Settled(ticket) => ticket.fresh = false,
                Step::Published(fresh) => *fresh = false,
                _ => {}
            }
        }
        for scheduler in &mut self.schedulers {
            match scheduler {
                Scheduler::Holding(ticket) => ticket.fresh = false,
                Scheduler::Published(fresh) => *fresh = false,
                Scheduler::Planned | Scheduler::Idle => {}
            }
        }
    }

    /// `attempt = attempt + 1`: everything with the row's number has an older one from now on.
    fn new_number(&mut self) {
        self.row.fresh = false;
        for tickets in [&mut self.main, &mut self.delayed] {
            let more = std::mem::take(&mut tickets.current) > 0;
            tickets.overtaken = tickets.overtaken.max(u8::from(more));
        }
        for queue in [&mut self.failed, &mut self.tail] {
            queue.overtaken += std::mem::take(&mut queue.plain) + std::mem::take(&mut queue.noted);
        }
        self.tail.forget();
        if self.sweep == Sweep::Idle {
            self.failed.forget();
        }
        for worker in &mut self.workers {
            if worker.step != Step::Idle {
                worker.number = Number::Overtaken;
            }
            if let Step::Settled(ticket) = &mut worker.step {
                ticket.number = Number::Overtaken;
            }
        }
        for scheduler in &mut self.schedulers {
            if let Scheduler::Holding(ticket) = scheduler {
                ticket.number = Number::Overtaken;
            }
        }
        if let Sweep::Pass { hand, .. } = &mut self.sweep {
            match hand {
                HeldMessage::Empty => {}
                HeldMessage::Got(kind)
                | HeldMessage::Judged(kind, _)
                | HeldMessage::Copied(kind) => {
                    *kind = crate::protocol::world::Parked::Overtaken;
                }
            }
        }
    }

    /// `ticket_published_at = NULL, relay_after = …`.
    pub(crate) fn set_unpublished(&mut self, held: bool) {
        self.row.unpublished = true;
        self.row.held = held;
        self.row.marked_in_pass = false;
    }

    /// `ticket_published_at = NULL, rev = rev + 1`, by the reconciler and the sweep.
    pub(crate) fn republish(&mut self) {
        self.new_revision();
        self.set_unpublished(false);
    }

    /// The claim: a scheduler's, or a worker's for a foreign task. `false`: the key exists.
    pub(crate) fn claim(&mut self, unpublished: bool, fences: Fences) -> bool {
        if self.row.claimed {
            if fences.has(Fence::UniqueKey) {
                return false;
            }
            self.second_row = true;
            return true;
        }
        self.row.claimed = true;
        if unpublished {
            self.set_unpublished(true);
        }
        true
    }

    /// `open_attempts` for the ticket in `worker`'s hand.
    pub(crate) fn open(&mut self, worker: usize, offered: bool, fences: Fences) -> Opening {
        let number = self.workers[worker].number;
        let wrong_number = number != Number::Current && fences.has(Fence::AttemptNumber);
        let wrong_state = next(self.row.state, Cause::Open).is_none() && fences.has(Fence::State);
        let early = !self.row.due && fences.has(Fence::DueTime);
        if wrong_number || wrong_state || early || !offered {
            return Opening::Nothing;
        }
        if self.row.stale && self.row.state == State::Pending {
            self.change(Cause::Skip, fences);
            return Opening::Skipped;
        }
        let previous = self.row.state;
        if self.row.holder == Holder::Worker(worker as u8) {
            // The same token once more: it opens nothing new.
        } else if number != Number::Current
            || previous == State::Running
            || previous == State::Succeeded
        {
            self.wrong = Some(SafetyViolation::OpenedTwice);
        } else if !self.row.due {
            self.wrong = Some(SafetyViolation::OpenedEarly);
        } else if previous == State::Failed && !self.touched {
            self.wrong = Some(SafetyViolation::FailedOpened);
        }
        let cancel = self.row.cancel && previous != State::Failed;
        self.change(Cause::Open, fences);
        self.row.cancel = cancel;
        self.row.holder = Holder::Worker(worker as u8);
        self.row.renewed();
        Opening::Opened
    }

    /// `look_at_unopened`, and the real decision.
    pub(crate) fn answer(&self, worker: usize, offered: bool, fences: Fences) -> OpenDecision {
        let row = self.row;
        let mine = row.holder == Holder::Worker(worker as u8) || !fences.has(Fence::Worker);
        let seen = open::ExecutionRow {
            state: row.state,
            attempt: CURRENT,
            mine: row.state == State::Running && mine,
            due_in: if row.due { Duration::ZERO } else { SOON },
            overdue: if row.long_due { open::UNOFFERED_TIMEOUT } else { Duration::ZERO },
            offered,
            waits: false,
        };
        let ticket = if fences.has(Fence::AttemptNumber) {
            real(self.workers[worker].number)
        } else {
            CURRENT
        };
        open::decide_unopened(ticket, row.claimed.then_some(&seen))
    }

    /// `renew_leases`, or its condition, which the settlement shares. `false`: fenced.
    pub(crate) fn renews(&self, worker: usize, fences: Fences) -> bool {
        let number = self.workers[worker].number;
        let checks = |fence| fences.has_in_settlement(fence);
        (number == Number::Current || !checks(Fence::AttemptNumber))
            && (self.row.holder == Holder::Worker(worker as u8) || !checks(Fence::Worker))
            && (self.row.state == State::Running || !checks(Fence::State))
    }

    /// `settle_attempts` by `worker`. `false`: fenced.
    pub(crate) fn settle(&mut self, worker: usize, ending: Ending, fences: Fences) -> bool {
        let fits = self.renews(worker, fences);
        let ending = match ending {
            Ending::Success => retry::AttemptEnd::Success,
            Ending::Retryable => retry::AttemptEnd::Retryable { after: None },
            Ending::Permanent => retry::AttemptEnd::Permanent,
            Ending::TimedOut => retry::AttemptEnd::TimedOut,
            Ending::Crashed => retry::AttemptEnd::Crashed,
            Ending::Interrupted => retry::AttemptEnd::Interrupted,
            Ending::Snoozed => retry::AttemptEnd::Snoozed { after: SOON },
        };
        fits && self.end(ending, true, fences)
    }

    /// `settle_lost`, by the rescuer or by a worker with a dead one's instance lock (`has_instance_lock`). `false`: no
    /// attempt was ended.
    pub(crate) fn lose(&mut self, has_instance_lock: bool, fences: Fences) -> bool {
        let is_lost = if has_instance_lock {
            self.row.holder == Holder::Dead
        } else {
            let by_database = self.row.clock_ahead && !fences.has(Fence::Observation);
            self.row.lease_over || by_database || !fences.has(Fence::Lease)
        };
        self.row.state == State::Running
            && is_lost
            && self.end(retry::AttemptEnd::Lost, false, fences)
    }

    fn end(&mut self, ending: retry::AttemptEnd, head_start: bool, fences: Fences) -> bool {
        let used = Usage::from(self.row.used);
        let verdict = retry::decide(ending, "", used, &POLICY, 0.5);
        let (cause, due, used) = match verdict {
            Decision::Succeed => (Cause::Succeed, true, used),
            _ if self.row.cancel => (Cause::Cancel, true, used),
            Decision::Retry { after, used } => (Cause::Retry, after.is_zero(), used),
            // No attempt of the model finds a lock held.
            Decision::Fail { used } => (Cause::Fail, true, used),
            Decision::Skip => return false,
        };
        if !self.change(cause, fences) {
            return false;
        }
        if self.row.state.has_ticket() {
            self.new_number();
            self.set_unpublished(head_start);
            self.row.due = due;
            if self.row.state == State::Retrying && fences.works(Part::Budget) {
                let before = Usage::from(self.row.used).snoozes;
                let snoozes = if fences.works(Part::Patience) { used.snoozes } else { before };
                self.row.used = Usage { snoozes, ..used }.into();
            }
        }
        true
    }

    /// `fail_unopened`: the ticket of a waiting row can never be opened.
    pub(crate) fn fail_unopened(&mut self, number: Number, fences: Fences) -> bool {
        let waits = matches!(self.row.state, State::Pending | State::Retrying);
        let fits = (number == Number::Current || !fences.has(Fence::AttemptNumber))
            && (waits || !fences.has(Fence::State));
        if !fits || !self.change(Cause::Fail, fences) {
            return false;
        }
        self.row.due = true;
        if fences.has(Fence::NewNumber) {
            self.new_number();
        }
        self.set_unpublished(false);
        true
    }

    /// `hand_back_ticket`: the row's ticket is unpublished again. `false`: the row has moved on.
    pub(crate) fn hand_back(&mut self, number: Number, fences: Fences) -> bool {
        let fits = number == Number::Current || !fences.has(Fence::AttemptNumber);
        if !fits || !self.row.state.has_ticket() {
            return false;
        }
        if !fences.has(Fence::NewRevision) {
            // As if the row had its ticket already: a mark that is on its way still fits.
            if self.row.unpublished {
                return false;
            }
            self.set_unpublished(true);
            return true;
        }
        self.new_revision();
        self.set_unpublished(true);
        true
    }

    /// `mark_published`. `fresh`: the row's revision is the one that was published.
    pub(crate) fn mark(&mut self, fresh: bool, fences: Fences) {
        if self.row.unpublished && (fresh || !fences.has(Fence::TicketPublishedAt)) {
            self.row.unpublished = false;
            self.row.held = false;
            self.row.marked_in_pass = self.sweep != Sweep::Idle && self.row.state == State::Failed;
        }
    }

    /// Applies an operator's action to the row.
    pub(crate) fn operate(&mut self, cause: Cause, fences: Fences) -> bool {
        if !self.row.claimed || !self.change(cause, fences) {
            return false;
        }
        match cause {
            Cause::Requeue => {
                self.row.used = UsedBudgets::default();
                self.row.due = true;
                self.set_unpublished(false);
            }
            Cause::Restore => self.set_unpublished(false),
            _ => {}
        }
        true
    }

    /// Returns the destination of the row's ticket.
    pub(crate) fn destination(&self) -> Queue {
        match self.row.state {
            State::Failed => Queue::Failed,
            State::Retrying if !self.row.due => Queue::Delay,
            _ => Queue::Main,
        }
    }
}

/// Returns the state after a cause when no check of the current state is made.
fn forced(cause: Cause) -> State {
    match cause {
        Cause::Open => State::Running,
        Cause::Succeed | Cause::Resolve => State::Succeeded,
        Cause::Retry => State::Retrying,
        Cause::Fail | Cause::Restore => State::Failed,
        Cause::Cancel => State::Cancelled,
        Cause::Skip => State::Skipped,
        Cause::Requeue => State::Pending,
        Cause::Discard => State::Discarded,
    }
}
