//! The database's clock, and the dispatch of actions.

use super::plans::is_jump;
use super::{Bounds, FIRINGS, Operator, Planner, Plans, Turn, Verdict, World};
use crate::explorer::take;

/// One action.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// A planner's next statement.
    Plan(usize),
    /// A planner dies, and its transaction with it.
    PlannerDies(usize),
    /// An operator begins a call.
    Decide(usize, Verdict, Option<u8>),
    /// An operator's next statement.
    Settle(usize),
    /// An operator's program dies.
    OperatorDies(usize),
    /// An hour passes.
    Passes,
    /// The clock is set.
    Jump(u8),
}

impl Bounds {
    /// Returns every action, in an order that never changes.
    pub fn actions(&self) -> Vec<Action> {
        let mut all = Vec::new();
        for planner in 0..self.planners {
            all.extend([Action::Plan(planner), Action::PlannerDies(planner)]);
        }
        for operator in 0..self.operators {
            all.extend([Action::Settle(operator), Action::OperatorDies(operator)]);
            for verdict in [Verdict::Release, Verdict::Discard] {
                all.push(Action::Decide(operator, verdict, None));
                if self.jobs > 1 {
                    let one = |job| Action::Decide(operator, verdict, Some(job as u8));
                    all.extend((0..self.jobs).map(one));
                }
            }
        }
        all.push(Action::Passes);
        all.extend((0..=FIRINGS as u8).map(Action::Jump));
        all
    }

    /// Applies `action` to `world`; `None`: it cannot happen there.
    pub(super) fn apply(&self, plans: &Plans, world: &World, action: Action) -> Option<World> {
        let mut next = *world;
        let done = match action {
            Action::Plan(who) => self.plan(plans, &mut next, who),
            Action::PlannerDies(who) => {
                take(&mut next.deaths)
                    && std::mem::take(&mut next.planners[who]) != Planner::default()
            }
            Action::Decide(who, verdict, only) => {
                let begun = Operator { turn: Turn::Next(0), verdict, only, saw: [0; FIRINGS] };
                world.holds > 0
                    && std::mem::replace(&mut next.operators[who], begun) == Operator::default()
            }
            Action::Settle(who) => self.settle(plans, &mut next, who),
            Action::OperatorDies(who) => {
                take(&mut next.deaths)
                    && std::mem::take(&mut next.operators[who]) != Operator::default()
            }
            Action::Passes => next.passes(),
            Action::Jump(to) => take(&mut next.jumps) && next.jump(to),
        };
        done.then_some(next)
    }
}

impl Action {
    /// Returns whether it comes from outside.
    pub const fn is_disturbance(self) -> bool {
        matches!(self, Self::PlannerDies(_) | Self::OperatorDies(_) | Self::Jump(_))
    }
}

impl World {
    fn passes(&mut self) -> bool {
        if usize::from(self.clock) == FIRINGS {
            return false;
        }
        self.clock += 1;
        self.high = self.high.max(self.clock);
        self.hold_is_due |= is_jump(self.seen, self.clock);
        true
    }

    /// Forward by more than an hour, or back.
    fn jump(&mut self, to: u8) -> bool {
        if !is_jump(self.clock, to) {
            return false;
        }
        for job in &mut self.jobs {
            let open = !(job.executed | job.gaps | job.held() | job.passed());
            for firing in 0..FIRINGS as u8 {
                let (nominal, bit) = (firing + 1, 1 << firing);
                if nominal >= to {
                    // It will be on time again.
                    job.jumped &= !bit;
                } else if nominal > self.high {
                    job.jumped |= bit & open;
                }
            }
        }
        self.clock = to;
        self.high = self.high.max(to);
        self.hold_is_due = true;
        true
    }

    /// Returns whether everything is decided and no process is busy.
    pub fn is_ended(&self) -> bool {
        let done = |job: &super::Job| usize::from(job.cursor) == FIRINGS && job.held() == 0;
        usize::from(self.clock) == FIRINGS
            && self.holds == 0
            && self.jobs.iter().all(done)
            && self.planners.iter().all(|one| *one == Planner::default())
            && self.operators.iter().all(|one| *one == Operator::default())
    }
}
