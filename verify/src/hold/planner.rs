//! A claim transaction, statement by statement: `shared/store/src/firing/clock.rs` and the planner.

use super::plans::is_jump;
use super::{Bounds, FIRINGS, Fence, JOBS, Phase, Planner, Plans, Turn, World};

impl Bounds {
    /// Executes the next statement of a planner; `false`: it waits for a lock.
    pub(super) fn plan(&self, plans: &Plans, world: &mut World, who: usize) -> bool {
        let mut me = world.planners[who];
        let done = match me.phase {
            Phase::Idle => {
                me = Planner { phase: Phase::Begun, now: world.clock, ..me };
                true
            }
            Phase::Begun => {
                me.held = world.holds > 0;
                me.phase = if self.has(Fence::OneLook) { Phase::Read } else { Phase::HalfRead };
                me.seen = if self.has(Fence::OneLook) { world.seen } else { 0 };
                true
            }
            Phase::HalfRead => {
                (me.seen, me.phase) = (world.seen, Phase::Read);
                true
            }
            Phase::Read => {
                Self::read(world, &mut me);
                true
            }
            Phase::Asks(_) | Phase::AsksAnew => Self::lock_clock(world, &mut me),
            Phase::Locked(at) => {
                self.notice(world, &mut me, at);
                true
            }
            Phase::Behind => {
                me.opens = world.holds == 0;
                me.phase = Phase::Noticed;
                true
            }
            Phase::Noticed | Phase::Looked => self.keep_hold(world, &mut me),
            Phase::Ready => {
                due_jobs(world, &mut me);
                true
            }
            Phase::Planned => {
                self.commit(plans, world, &mut me);
                true
            }
            Phase::Aside => {
                let aside = std::mem::take(&mut me.aside);
                for (job, firings) in world.jobs.iter_mut().zip(aside) {
                    set_aside(&mut job.held_at, firings, me.now);
                }
                me = Planner::default();
                true
            }
        };
        world.planners[who] = me;
        done
    }

    /// Judges the values read; `planner_clock_beat` without a jump.
    fn read(world: &World, me: &mut Planner) {
        if is_jump(me.seen, me.now) {
            me.phase = Phase::Asks(world.clock);
        } else {
            let free = world.planners.iter().all(|one| one.clock.is_none());
            if me.now > me.seen && free && world.seen < me.now {
                me.clock = Some(Some(me.now));
            }
            me.phase = Phase::Looked;
        }
        me.seen = 0;
    }

    /// `lock_planner_clock`. PostgreSQL reads the clock before it waits, and again if the row was
    /// changed meanwhile.
    fn lock_clock(world: &World, me: &mut Planner) -> bool {
        if world.planners.iter().any(|one| one.clock.is_some()) {
            return false;
        }
        let Phase::Asks(at) = me.phase else {
            (me.phase, me.clock) = (Phase::Locked(world.clock), Some(None));
            return true;
        };
        (me.phase, me.clock) = (Phase::Locked(at), Some(None));
        true
    }

    /// `hold_catch_up` and `planner_clock_jumped`.
    fn notice(&self, world: &mut World, me: &mut Planner, at: u8) {
        me.held = true;
        if self.has(Fence::JudgeAgain) && !is_jump(world.seen, at) {
            me.phase = Phase::Looked;
        } else if self.has(Fence::Together) {
            me.opens = world.holds == 0 || !self.has(Fence::OneHold);
            me.clock = Some(Some(at));
            me.phase = Phase::Noticed;
        } else {
            me.clock = None;
            me.phase = Phase::Behind;
            write_clock(world, at);
        }
    }

    /// `keep_hold`, and if the hold has ended since it was found, `hold_catch_up` again.
    fn keep_hold(&self, world: &World, me: &mut Planner) -> bool {
        let noticed = me.phase == Phase::Noticed;
        if me.held && !me.opens && self.has(Fence::KeepHold) {
            if world.operators.iter().any(|one| one.turn == Turn::EndLocked) {
                return false;
            }
            me.keeps = world.holds > 0;
            me.opens = noticed && !me.keeps && self.has(Fence::HoldAgain);
            me.held = me.keeps || me.opens;
        }
        me.phase = Phase::Ready;
        true
    }

    /// Makes all writes of the transaction visible, and releases its locks.
    fn commit(&self, plans: &Plans, world: &mut World, me: &mut Planner) {
        for number in (0..JOBS).filter(|number| me.jobs & (1 << number) != 0) {
            let job = &mut world.jobs[number];
            let plan = plans.planned(job.cursor, me.now, me.held);
            // The planner's decisions about late firings are those that no operator has made.
            let late = (1 << me.now.saturating_sub(1)) - 1;
            world.unasked |= (plan.executed | plan.gaps) & job.jumped & late != 0;
            job.twice |= job.gaps & plan.gaps != 0;
            job.executed |= plan.executed;
            job.gaps |= plan.gaps;
            job.cursor = plan.next;
            job.jumped &= !(plan.executed | plan.gaps | plan.held);
            if self.has(Fence::WithCursor) {
                set_aside(&mut job.held_at, plan.held, me.now);
            } else {
                me.aside[number] = plan.held;
            }
        }
        if me.opens {
            world.needless |= !world.hold_is_due;
            world.holds += 1;
        }
        if let Some(Some(at)) = me.clock {
            // A planner that begins a hold, or finds one, has noticed the jump.
            let noticed = me.held && is_jump(world.seen, at);
            write_clock(world, at);
            if noticed || me.opens {
                world.hold_is_due = is_jump(world.seen, world.clock);
            }
            // A clock that was set back is noticed once more, which errs on the safe side.
            world.hold_is_due |= at > world.clock;
        }
        let left = me.aside;
        let now = me.now;
        *me = Planner::default();
        if left != [0; JOBS] {
            *me = Planner { phase: Phase::Aside, now, aside: left, ..*me };
        }
    }
}

/// `due_jobs`; without due jobs and without writes, the transaction is over.
fn due_jobs(world: &World, me: &mut Planner) {
    for (number, job) in world.jobs.iter().enumerate() {
        if job.cursor < me.now && usize::from(job.cursor) < FIRINGS && !world.is_locked(number) {
            me.jobs |= 1 << number;
        }
    }
    let writes = me.opens || matches!(me.clock, Some(Some(_)));
    me.phase = Phase::Planned;
    if me.jobs == 0 && !writes {
        *me = Planner::default();
    }
}

fn write_clock(world: &mut World, at: u8) {
    world.seen = at;
    for one in &mut world.planners {
        if matches!(one.phase, Phase::Asks(_)) {
            one.phase = Phase::AsksAnew;
        }
    }
}

fn set_aside(held_at: &mut [u8; FIRINGS], firings: u8, now: u8) {
    for (firing, at) in held_at.iter_mut().enumerate() {
        if firings & (1 << firing) != 0 {
            *at = now;
        }
    }
}

impl World {
    /// Returns whether another process has locked the job.
    pub(super) fn is_locked(&self, job: usize) -> bool {
        self.planners.iter().any(|one| one.jobs & (1 << job) != 0)
            || self.operators.iter().any(|one| one.turn == Turn::Locked(job as u8))
    }
}
