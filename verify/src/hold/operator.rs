//! An operator's release or discard, transaction by transaction: `shared/store/src/firing/catch_up/settle.rs`.

use super::{Bounds, FIRINGS, Fence, Operator, Plans, Turn, Verdict, World};

impl Bounds {
    /// Executes the next statement of an operator's call; `false`: it waits for a lock, or has none.
    pub(super) fn settle(&self, plans: &Plans, world: &mut World, who: usize) -> bool {
        let mut me = world.operators[who];
        let done = match me.turn {
            Turn::Idle => false,
            Turn::Next(from) => self.next_job(world, &mut me, usize::from(from)),
            Turn::Locked(number) => {
                self.decide(plans, world, &mut me, usize::from(number));
                true
            }
            Turn::Ending => self.ending(world, &mut me),
            Turn::EndLocked => {
                if !(self.has(Fence::Look) && world.has_held()) {
                    self.end(world, me.verdict);
                }
                me = Operator::default();
                true
            }
            Turn::SawNothing => {
                let is_locked = world.is_hold_locked();
                if !is_locked {
                    self.end(world, me.verdict);
                    me = Operator::default();
                }
                !is_locked
            }
        };
        world.operators[who] = me;
        done
    }

    /// `lock_held_jobs`, of a batch of one job.
    fn next_job(&self, world: &World, me: &mut Operator, from: usize) -> bool {
        let wanted = |job: &usize| me.only.is_none_or(|only| usize::from(only) == *job);
        let held = |job: &usize| world.jobs[*job].held() != 0;
        if me.saw == [0; FIRINGS] {
            let Some(job) = (from..self.jobs).filter(wanted).find(held) else {
                if me.only.is_some() {
                    *me = Operator::default();
                } else {
                    me.turn = Turn::Ending;
                }
                return true;
            };
            if !self.has(Fence::ReadLocked) {
                me.saw = world.jobs[job].held_at;
                me.turn = Turn::Next(job as u8);
                return true;
            }
            me.turn = Turn::Locked(job as u8);
            return !world.is_locked(job);
        }
        me.turn = Turn::Locked(from as u8);
        !world.is_locked(from)
    }

    /// `held_runs_of_jobs`, the rows and gaps, `forget_held_firings`, and the commit.
    fn decide(&self, plans: &Plans, world: &mut World, me: &mut Operator, number: usize) {
        let job = &mut world.jobs[number];
        let saw = std::mem::take(&mut me.saw);
        let held_at = if self.has(Fence::ReadLocked) { job.held_at } else { saw };
        let held = held_at.iter().enumerate();
        let all = held.fold(0, |all, (firing, at)| all | (u8::from(*at > 0) << firing));
        let (executed, gaps) = match me.verdict {
            Verdict::Release => {
                let plan = plans.released(held_at);
                (plan.executed, plan.gaps)
            }
            Verdict::Discard => (0, all),
        };
        job.twice |= job.gaps & gaps != 0;
        job.executed |= executed;
        job.gaps |= gaps;
        if self.has(Fence::Delete) {
            job.held_at = [0; FIRINGS];
        }
        me.turn = Turn::Next(number as u8 + 1);
    }

    /// `lock_hold`, or without it only the check.
    fn ending(&self, world: &World, me: &mut Operator) -> bool {
        if world.holds == 0 || (!self.has(Fence::LockHold) && world.has_held()) {
            *me = Operator::default();
            return true;
        }
        if !self.has(Fence::LockHold) {
            me.turn = Turn::SawNothing;
            return true;
        }
        me.turn = Turn::EndLocked;
        !world.is_hold_locked()
    }

    /// `end_hold`. It also decides noticed firings that no planner has reached.
    fn end(&self, world: &mut World, verdict: Verdict) {
        world.holds = 0;
        if self.discards_all && verdict == Verdict::Discard {
            return;
        }
        let noticed = (1 << world.seen.saturating_sub(1)) - 1;
        for job in &mut world.jobs {
            job.jumped &= !noticed;
        }
    }
}

impl World {
    fn has_held(&self) -> bool {
        self.jobs.iter().any(|job| job.held() != 0)
    }

    /// Returns whether another process keeps the hold, or is about to end it.
    fn is_hold_locked(&self) -> bool {
        self.planners.iter().any(|one| one.keeps)
            || self.operators.iter().any(|one| one.turn == Turn::EndLocked)
    }
}
