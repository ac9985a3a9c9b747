//! The effect of each action.

use sexton_model::plan::Disposition;
use sexton_model::plan::overlap::{UnderWay, WaitReason};
use sexton_model::state::{Cause, State, next};

use super::{Action, Execution, Fence, Job, Planner, Task, World};
use crate::explorer::take;

impl Job {
    /// Applies `action` to `world`; `None`: it cannot happen there.
    pub(super) fn apply(self, world: &World, action: Action) -> Option<World> {
        let mut next = *world;
        let done = match action {
            Action::LookToClaim(planner) => self.look_to_claim(&mut next, planner),
            Action::Claim(planner) => self.claim(&mut next, planner),
            Action::LookForWaiters(planner) => self.look_for_waiters(&mut next, planner),
            Action::Admit(planner) => self.admit(&mut next, planner),
            Action::Open(one) => self.open(&mut next.executions[one]),
            Action::End(one, well) => next.executions[one].end(well),
            Action::Settle(one) => self.settle(&mut next.executions[one]),
            Action::Write(one) => self.write(&mut next.executions[one]),
            Action::Commit(one) => next.executions[one].commit(),
            Action::Lose(one) => next.executions[one].lose(),
            Action::Die(one) => take(&mut next.faults) && next.executions[one].die(),
            Action::Trigger => take(&mut next.people) && trigger(&mut next),
            Action::Cancel(one) => take(&mut next.people) && next.executions[one].cancel(),
            Action::Requeue(one) => take(&mut next.people) && next.executions[one].requeue(),
            Action::CopyBack(one) => take(&mut next.people) && next.executions[one].copy_back(),
        };
        done.then_some(next)
    }

    fn look_to_claim(self, world: &mut World, planner: usize) -> bool {
        if self.has(Fence::JobLock) || world.planners[planner] != Planner::Idle {
            return false;
        }
        world.planners[planner] = Planner::SawUnderWay(world.under_way());
        world.unclaimed().is_some()
    }

    /// `due_jobs`, the plan, `insert_claims` and `replace_under_way`: one transaction.
    fn claim(self, world: &mut World, planner: usize) -> bool {
        let Some(new) = world.unclaimed() else { return false };
        let mut under_way = match (self.has(Fence::JobLock), world.planners[planner]) {
            (true, Planner::Idle) => world.under_way(),
            (false, Planner::SawUnderWay(seen)) => seen,
            _ => return false,
        };
        let locked = world.executions.iter().any(|one| one.task == Task::Committing);
        let replaces = self.policy.replaces(under_way);
        if replaces && locked && self.has(Fence::PutOff) {
            return false;
        }
        if replaces {
            for one in &mut world.executions {
                one.replace();
            }
        }
        let new = &mut world.executions[new];
        match self.policy.disposition(&mut under_way, true) {
            Disposition::Run => new.state = Some(State::Pending),
            Disposition::Waits(why) => {
                new.state = Some(State::Pending);
                new.waits = Some(why);
            }
            Disposition::Skipped(_) => new.state = Some(State::Skipped),
        }
        world.planners[planner] = Planner::Idle;
        true
    }

    fn look_for_waiters(self, world: &mut World, planner: usize) -> bool {
        let sees = world.has_waiter() && (world.is_free() || !self.has(Fence::Free));
        if !self.admits || !sees || world.planners[planner] != Planner::Idle {
            return false;
        }
        world.planners[planner] = Planner::SawFree;
        true
    }

    /// `admit_waiters`. Even if it finds nothing, the read is used up.
    fn admit(self, world: &mut World, planner: usize) -> bool {
        if std::mem::replace(&mut world.planners[planner], Planner::Idle) != Planner::SawFree {
            return false;
        }
        let checks = self.has(Fence::AskAgain) && self.has(Fence::Free);
        if checks && !world.is_free() {
            return true;
        }
        if let Some(first) = world.executions.iter_mut().find(|one| one.waits.is_some()) {
            first.waits = None;
        }
        true
    }

    /// `open_attempts`, by the ticket that was published at the admission, or by a copy.
    fn open(self, one: &mut Execution) -> bool {
        let copy = std::mem::take(&mut one.copy);
        if one.waits.is_some() && (self.has(Fence::Waiter) || !copy) {
            // The copy is dropped.
            return copy;
        }
        let failed = one.state == Some(State::Failed);
        if failed && !copy {
            return false;
        }
        if !one.change(Cause::Open) {
            return copy;
        }
        one.by_hand |= failed;
        one.waits = None;
        one.task = Task::Runs;
        true
    }

    /// `settle_attempts`.
    fn settle(self, one: &mut Execution) -> bool {
        let Task::Ended(well) = one.task else { return false };
        let refused = one.replaced && self.has(Fence::Replaced);
        let cause = if well && !refused { Cause::Succeed } else { one.next_after_failure() };
        one.settled(cause)
    }

    /// `settle_attempts` in the task's own transaction. After a refusal, it rolls back and is cut short.
    fn write(self, one: &mut Execution) -> bool {
        if one.task != Task::Ended(true) {
            return false;
        }
        let refused = one.replaced && self.has(Fence::Replaced);
        one.task = if refused { Task::Ended(false) } else { Task::Committing };
        true
    }
}

/// `insert_triggered`, under the job's lock.
fn trigger(world: &mut World) -> bool {
    let Some(new) = world.unclaimed() else { return false };
    let busy = world.under_way().any();
    let new = &mut world.executions[new];
    new.state = Some(State::Pending);
    new.waits = busy.then_some(WaitReason::Turn);
    true
}

impl World {
    /// Returns the next execution to claim.
    fn unclaimed(&self) -> Option<usize> {
        self.executions.iter().position(|one| one.state.is_none())
    }

    fn has_waiter(&self) -> bool {
        self.executions.iter().any(|one| one.waits.is_some())
    }

    fn is_free(&self) -> bool {
        !self.executions.iter().any(Execution::is_let_go)
    }

    /// `read_under_way`.
    fn under_way(&self) -> UnderWay {
        let mut under_way = UnderWay::default();
        for one in &self.executions {
            match (one.waits, one.state) {
                (Some(WaitReason::Turn), _) => under_way.trigger_waits = true,
                (Some(_), _) => under_way.firing_waits = true,
                (None, Some(State::Running)) => under_way.running = true,
                (None, Some(state)) if state.is_under_way() => under_way.ready = true,
                _ => {}
            }
        }
        under_way
    }

    /// Returns whether every execution has ended, or waits for an operator.
    pub(super) fn is_ended(&self) -> bool {
        self.executions
            .iter()
            .all(|one| one.state.is_some_and(|state| state.is_final() || state == State::Failed))
    }
}

impl Execution {
    fn change(&mut self, cause: Cause) -> bool {
        let Some(to) = self.state.and_then(|from| next(from, cause)) else { return false };
        self.state = Some(to);
        true
    }

    /// `replace_under_way`, of one row. A locked row is skipped, so that without the fence that defers the claim such
    /// a row goes on.
    fn replace(&mut self) {
        if !self.state.is_some_and(State::is_under_way) || self.waits == Some(WaitReason::Turn) {
            return;
        }
        self.condemned = true;
        if self.task == Task::Committing {
            return;
        }
        self.replaced = true;
        if self.state == Some(State::Running) {
            self.cancel = true;
        } else {
            self.change(Cause::Cancel);
            self.waits = None;
        }
    }

    fn end(&mut self, well: bool) -> bool {
        let runs = self.task == Task::Runs;
        if runs {
            self.task = Task::Ended(well);
        }
        runs
    }

    fn next_after_failure(&self) -> Cause {
        match (self.cancel, self.retried) {
            (true, _) => Cause::Cancel,
            (false, false) => Cause::Retry,
            (false, true) => Cause::Fail,
        }
    }

    fn settled(&mut self, cause: Cause) -> bool {
        self.retried |= cause == Cause::Retry;
        self.task = Task::None;
        self.cancel &= cause == Cause::Cancel;
        self.change(cause)
    }

    /// A transaction that waited for the row's lock finds it ended.
    fn commit(&mut self) -> bool {
        self.task == Task::Committing && self.settled(Cause::Succeed)
    }

    /// `settle_lost`.
    fn lose(&mut self) -> bool {
        self.task == Task::Dead && self.settled(self.next_after_failure())
    }

    /// An uncommitted transaction is rolled back with its worker.
    fn die(&mut self) -> bool {
        let open = matches!(self.task, Task::Runs | Task::Ended(_) | Task::Committing);
        if open {
            self.task = Task::Dead;
        }
        open
    }

    /// An operator waits for a lock, and then finds the row ended.
    fn cancel(&mut self) -> bool {
        if self.task == Task::Committing {
            return false;
        }
        if self.state == Some(State::Running) {
            return !std::mem::replace(&mut self.cancel, true);
        }
        self.waits = None;
        self.change(Cause::Cancel)
    }

    fn requeue(&mut self) -> bool {
        if !self.change(Cause::Requeue) {
            return false;
        }
        self.waits = Some(WaitReason::Turn);
        (self.retried, self.by_hand, self.condemned) = (false, false, false);
        true
    }

    fn copy_back(&mut self) -> bool {
        self.state == Some(State::Failed) && !std::mem::replace(&mut self.copy, true)
    }
}
