//! What must hold after every operation: each change of a row is one that the operation may make.

use chrono::{DateTime, Utc};
use sexton_model::id::AttemptNumber;
use sexton_model::open::STALE_REASON;
use sexton_model::retry::RetryPolicy;
use sexton_model::state::{Cause, State, next};

use super::ledger::{Ledger, Notes};
use super::rows::{Row, Rows};
use super::stop::Stop;

/// An operation's place: what it did, and when.
pub(super) struct Checker<'a> {
    pub(super) ledger: &'a mut Ledger,
    pub(super) notes: &'a mut Notes,
    pub(super) now: DateTime<Utc>,
    /// The same by a clock that nobody sets.
    pub(super) steady: DateTime<Utc>,
    /// When the simulation began.
    pub(super) began: DateTime<Utc>,
    /// The retry policy of a job's executions.
    pub(super) policy: &'a dyn Fn(&Row) -> RetryPolicy,
    /// Until when a firing may be begun; `None`: however late.
    pub(super) stale_at: &'a dyn Fn(&Row) -> Option<DateTime<Utc>>,
    /// Whether a verify task first tells whether the effect of an execution has happened.
    pub(super) has_verify_task: &'a dyn Fn(&Row) -> bool,
}

/// `Err(Stop::Broken)` with the text unless the condition holds.
macro_rules! invariant {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err(Stop::broken(format!($($text)+)));
        }
    };
}
pub(super) use invariant;

impl Checker<'_> {
    /// Compares the rows before and after.
    pub(super) fn compare(&mut self, before: &Rows, after: &Rows) -> Result<(), Stop> {
        for (id, row) in before {
            if !after.contains_key(id) {
                let ended = row.state.is_final() || row.state == State::Discarded;
                invariant!(self.notes.pruned && ended, "{} is gone", row.name());
                self.ledger.forget(*id);
            }
        }
        for (id, row) in after {
            match before.get(id) {
                Some(was) => self.changed(was, row)?,
                None => self.claimed(row)?,
            }
            self.renewed(row);
            let timely = row.earliest >= self.began;
            invariant!(timely, "{} is on the row: {}", row.earliest, row.name());
            history(row)?;
            outputs(before.get(id), row)?;
            self.budgets(row)?;
            let actions = self.ledger.actions.get(id).copied().unwrap_or_default();
            invariant!(
                row.actions == actions,
                "{}: {} actions recorded of {actions}",
                row.name(),
                row.actions
            );
        }
        Ok(())
    }

    fn claimed(&mut self, row: &Row) -> Result<(), Stop> {
        let fresh = matches!(row.state, State::Pending | State::Skipped) && row.attempt.get() == 1;
        invariant!(fresh, "a new row is {}", row.name());
        let key = (row.job, row.execution_key.clone());
        let known = *self.ledger.keys.entry(key).or_insert(row.id);
        invariant!(known == row.id, "two executions of one key: {}", row.name());
        Ok(())
    }

    fn changed(&mut self, was: &Row, is: &Row) -> Result<(), Stop> {
        let name = || format!("{} becomes {}", was.name(), is.name());
        let stays = |row: &Row| {
            (row.job, row.execution_key.clone(), row.idempotency_key.clone(), row.scheduled_for)
        };
        invariant!(stays(was) == stays(is), "what never changes did: {}", name());
        invariant!(is.attempt >= was.attempt, "the attempt number shrinks: {}", name());
        invariant!(is.attempt <= was.attempt.next(), "attempt numbers are left out: {}", name());
        invariant!(is.rev >= was.rev, "the revision shrinks: {}", name());
        if was.published.is_some() && is.published.is_none() {
            invariant!(
                is.rev > was.rev,
                "a ticket to publish again under an old revision: {}",
                name()
            );
        }
        if was.state == is.state {
            invariant!(is.attempt == was.attempt, "a number changes without a move: {}", name());
            invariant!(is.token == was.token, "opened while it was running: {}", name());
            invariant!(is.lease_until >= was.lease_until, "a lease is cut short: {}", name());
            return self.marked(was, is);
        }
        let moves =
            Cause::ALL.into_iter().filter(|cause| next(was.state, *cause) == Some(is.state));
        invariant!(moves.count() > 0, "no such move: {}", name());
        invariant!(is.rev > was.rev, "a move without a new revision: {}", name());
        if is.state == State::Running {
            return self.opened(was, is);
        }
        if was.state == State::Running {
            return self.ended(was, is);
        }
        let (person, bulks) = (self.notes.person, &self.notes.by_bulk);
        let moved_by = |cause| person == Some((is.id, cause)) || bulks.contains(&(is.id, cause));
        match (was.state, is.state) {
            (State::Pending | State::Retrying, State::Failed) => {
                let unopenable = self.notes.unopenable.contains(&(is.id, was.attempt));
                invariant!(unopenable, "failed without an attempt: {}", name());
                let fresh = is.attempt > was.attempt && !is.is_published();
                invariant!(fresh, "failed with the ticket that could not be opened: {}", name());
            }
            (_, State::Skipped) => {
                let presented = self.notes.presented.contains(&(is.id, was.attempt));
                let stale = is.skip_reason.as_deref() == Some(STALE_REASON) && self.is_stale(was);
                invariant!(presented && stale, "skipped, and not for its age: {}", name());
            }
            (State::Failed, State::Pending) => {
                invariant!(moved_by(Cause::Requeue), "requeued by nobody: {}", name());
                self.ledger.budget_from.insert(is.id, is.attempt.get());
                self.ledger.by_hand.remove(&is.id);
            }
            // The check of the whole job decides whether that was right.
            (_, State::Cancelled) if is.replaced_by.is_some() => {}
            (_, to) => {
                let cause = moved_to(to);
                invariant!(moved_by(cause), "moved by nobody: {}", name());
            }
        }
        self.recorded_of_bulk(is);
        Ok(())
    }

    /// What a bulk does is recorded, but for a question that it takes back unbegun.
    fn recorded_of_bulk(&mut self, is: &Row) {
        let cause = if is.state == State::Pending { Cause::Requeue } else { moved_to(is.state) };
        let recorded = cause != Cause::Cancel || self.notes.pruned;
        if recorded && self.notes.by_bulk.contains(&(is.id, cause)) {
            self.ledger.record_action(is.id);
        }
        if cause == Cause::Restore && is.asks_about.is_some() {
            self.ledger.bulks.restored(is.id);
        }
    }

    /// Whether it is a firing that nobody has begun, and too old to be.
    fn is_stale(&self, row: &Row) -> bool {
        let first = row.state == State::Pending && row.attempt == AttemptNumber::FIRST;
        first && (self.stale_at)(row).is_some_and(|at| at < self.now)
    }

    /// Only a mark of the same revision marks a ticket published.
    fn marked(&self, was: &Row, is: &Row) -> Result<(), Stop> {
        let paid = was.published.is_none() && is.published.is_some();
        if paid && was.state.has_ticket() {
            let confirmed = self.notes.marked.contains(&(was.id, was.rev));
            invariant!(confirmed, "marked as published, which it was not: {}", is.name());
        }
        Ok(())
    }

    fn opened(&mut self, was: &Row, is: &Row) -> Result<(), Stop> {
        let name = || format!("{} becomes {}", was.name(), is.name());
        let presented = self.notes.presented.contains(&(is.id, was.attempt));
        invariant!(presented, "opened by another ticket than its own: {}", name());
        invariant!(is.attempt == was.attempt, "opened under another number: {}", name());
        invariant!(
            was.due.is_none_or(|due| due <= self.now),
            "opened before it was due: {}",
            name()
        );
        invariant!(!self.is_stale(was), "begun though it came too late: {}", name());
        let number = (is.id, is.attempt);
        if was.state == State::Failed {
            let released = self.ledger.released.contains(&number);
            invariant!(released, "failed, and opened though nobody asked: {}", name());
            self.ledger.by_hand.insert(is.id);
            self.ledger.budget_from.insert(is.id, is.attempt.get());
            self.ledger.record_action(is.id);
        }
        let token = is.token.unwrap_or_default();
        let known = self.ledger.opened.insert(number, token);
        invariant!(known.is_none(), "an attempt is opened twice: {}", name());
        let opened_at = is.attempts.get(&is.attempt.get()).map(|attempt| attempt.opened_at);
        invariant!(opened_at == Some(self.now), "opened at {opened_at:?}: {}", name());
        let lease = is.lease_until.is_some_and(|until| until > self.now);
        invariant!(lease, "opened without a lease: {}", name());
        Ok(())
    }

    fn renewed(&mut self, row: &Row) {
        let Some(until) = row.lease_until else { return };
        let (at, now) = (self.steady, self.now);
        let renewed = self.ledger.renewed.entry(row.id).or_insert((until, until - now, at));
        if renewed.0 != until {
            *renewed = (until, until - now, at);
        }
    }

    fn ended(&self, was: &Row, is: &Row) -> Result<(), Stop> {
        let name = || format!("{} becomes {}", was.name(), is.name());
        let by_worker = self.notes.settled.iter().any(|held| {
            held.execution_id == was.id
                && held.attempt == was.attempt
                && Some(held.token.get()) == was.token
        });
        if !by_worker {
            // By the time that has passed, whatever the database's clock says.
            let renewed = self.ledger.renewed.get(&was.id);
            let over = renewed.is_some_and(|(_, lease, at)| *at + *lease <= self.steady);
            let dead = was.worker.is_some_and(|worker| self.notes.dead.contains(&worker));
            let lost = is.outcome.as_deref() == Some("lost");
            invariant!(lost && (over || dead), "taken from a worker that holds it: {}", name());
        }
        let hopeless = is.outcome.as_deref() == Some("hopeless");
        invariant!(!(hopeless && is.state == State::Retrying), "tried again in vain: {}", name());
        let again = matches!(is.state, State::Retrying | State::Failed);
        invariant!(again == (is.attempt > was.attempt), "the wrong number: {}", name());
        invariant!(
            !again || is.published.is_none(),
            "the next ticket is not unpublished: {}",
            name()
        );
        invariant!(!(again && was.cancel_requested), "a cancel is forgotten: {}", name());
        Ok(())
    }

    /// What is used up is what the attempts since the last requeue say, and no more than the policy
    /// allows.
    fn budgets(&self, row: &Row) -> Result<(), Stop> {
        let from = self.ledger.budget_from.get(&row.id).copied().unwrap_or(1);
        let count = |outcome: &str| {
            let since = row.attempts.range(from..).map(|(_, attempt)| attempt.outcome.as_deref());
            since.filter(|ended| *ended == Some(outcome)).count()
        };
        // Retention takes the attempts of a row that it keeps for its key.
        if row.attempts.is_empty() {
            return Ok(());
        }
        let policy = (self.policy)(row);
        let (errors, timeouts) = (count("error"), count("timeout"));
        let crashes = count("lost") + count("out_of_memory");
        invariant!(errors <= policy.max_retries as usize + 1, "{errors} failures: {}", row.name());
        invariant!(timeouts <= policy.max_timeouts as usize, "{timeouts} timeouts: {}", row.name());
        invariant!(crashes <= policy.max_crashes as usize, "{crashes} crashes: {}", row.name());
        let left = timeouts < policy.max_timeouts as usize && crashes < policy.max_crashes as usize;
        invariant!(left || row.state != State::Retrying, "no budget is left: {}", row.name());
        let (snoozes, most) = (count("snoozed"), policy.max_snoozes as usize);
        invariant!(snoozes <= most + 1, "{snoozes} snoozes: {}", row.name());
        let ended = [errors.min(policy.max_retries as usize), timeouts, crashes, snoozes.min(most)];
        let used = [row.retries_used, row.timeouts_used, row.crashes_used, row.snoozes_used];
        invariant!(
            used.map(|count| count as usize) == ended,
            "{ended:?} errors, timeouts, crashes and snoozes, but {used:?} counted: {}",
            row.name()
        );
        Ok(())
    }
}

/// By which cause something comes into this state that had not begun or had failed.
const fn moved_to(state: State) -> Cause {
    match state {
        State::Cancelled => Cause::Cancel,
        State::Discarded => Cause::Discard,
        State::Succeeded => Cause::Resolve,
        _ => Cause::Restore,
    }
}

/// Each line of an attempt is stored once, in their order, and none after its end; who records the end
/// of a task leaves no line out.
fn outputs(was: Option<&Row>, is: &Row) -> Result<(), Stop> {
    for (number, attempt) in &is.attempts {
        let before = was.and_then(|was| was.attempts.get(number));
        let stored = attempt.output.len();
        let whole = attempt.output.iter().copied().eq(1..=stored as i64);
        invariant!(whole, "attempt {number} has the lines {:?}: {}", attempt.output, is.name());
        let known = before.map_or(0, |before| before.output.len());
        invariant!(stored >= known, "output of attempt {number} is gone: {}", is.name());
        let ended = before.is_some_and(|before| before.finished_at.is_some());
        invariant!(
            !ended || stored == known,
            "attempt {number} writes after its end: {}",
            is.name()
        );
        let settled = attempt.outcome.as_deref().is_some_and(|outcome| outcome != "lost");
        invariant!(
            !settled || stored > 0,
            "attempt {number} has lost its last line: {}",
            is.name()
        );
    }
    Ok(())
}

/// The attempts' records and the row say the same.
fn history(row: &Row) -> Result<(), Stop> {
    let current = row.attempt.get();
    for (number, attempt) in &row.attempts {
        let open = row.state == State::Running && *number == current;
        let finished = attempt.finished_at.is_some();
        invariant!(open != finished, "attempt {number} is left as it was: {}", row.name());
        invariant!(
            *number < current || (*number == current && !row.state.has_ticket()),
            "attempt {number} was opened ahead of its row: {}",
            row.name()
        );
        invariant!(
            !open || Some(attempt.worker_id) == row.worker,
            "attempt {number} has another worker than its row: {}",
            row.name()
        );
    }
    let open = row.attempts.contains_key(&current);
    invariant!(open || row.state != State::Running, "it runs no attempt: {}", row.name());
    Ok(())
}
