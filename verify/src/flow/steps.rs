//! The effect of each action.

use sexton_model::flow::{RunsWhen, Verdict, verdict};
use sexton_model::state::{Cause, State, next};

use super::{Action, Fence, Flow, MEMBERS, Member, Session, UPSTREAM, World, ended};
use crate::explorer::take;

impl Flow {
    /// Applies `action` to `world`; `None`: it cannot happen there.
    pub(super) fn apply(self, world: &World, action: Action) -> Option<World> {
        let mut after = *world;
        let done = match action {
            Action::End(session, member, well) => end(&mut after, session, member, well),
            Action::Cancel(session, member) => {
                take(&mut after.people) && begin(&mut after, session, member, Cause::Cancel)
            }
            Action::Requeue(session, member) => {
                take(&mut after.people) && begin(&mut after, session, member, Cause::Requeue)
            }
            Action::Discard(session, member) => {
                take(&mut after.people) && begin(&mut after, session, member, Cause::Discard)
            }
            Action::Restore(session, member) => {
                take(&mut after.people) && begin(&mut after, session, member, Cause::Restore)
            }
            Action::Follow(session) => self.follow(&mut after, session),
            Action::Commit(session) => self.commit(&mut after, session),
            Action::RollBack(session) => after.sessions[session].take().is_some(),
        };
        done.then_some(after)
    }

    fn runs_when(self, member: usize) -> RunsWhen {
        if member == 2 { self.runs_when } else { RunsWhen::AllSucceeded }
    }

    /// Whether the trigger does something about this change.
    fn fires(self, from: State, to: State, by_worker: bool) -> bool {
        let is_end = |state| ended(state) || state == State::Failed && !self.has(Fence::Parked);
        is_end(from) != is_end(to) && (by_worker || self.has(Fence::EveryEnd))
    }

    /// Takes the flow's lock and reads. Without the lock another may do so at the same time.
    fn follow(self, world: &mut World, session: usize) -> bool {
        let held = world.sessions.iter().flatten().any(|other| other.read.is_some());
        if held && self.has(Fence::FlowLock) {
            return false;
        }
        let read = world.members.map(|member| (member.waits_for, member.unsuccessful));
        let Some(open) = &mut world.sessions[session] else { return false };
        let first = open.read.is_none();
        open.read = Some(read);
        first
    }

    /// Commits the change of state, and what follows from it by what was read.
    fn commit(self, world: &mut World, session: usize) -> bool {
        let Some(Session { member, to, read: Some(read) }) = world.sessions[session].take() else {
            return false;
        };
        let from = world.members[member].state;
        world.members[member].state = to;
        let by_worker = matches!(to, State::Succeeded | State::Failed) && from == State::Pending;
        if ended(from) != ended(to) {
            // The count is the trigger's, too, but no part that could be missing here touches it.
            world.open = if ended(to) { world.open - 1 } else { world.open + 1 };
        }
        let follows = self.fires(from, to, by_worker) && (ended(to) || to == State::Failed);
        !follows || self.spread(world, member, read)
    }

    /// What follows from an end, and from what ends by that; `false`: another session has locked a row of it.
    fn spread(self, world: &mut World, member: usize, read: [(u8, u8); MEMBERS]) -> bool {
        let mut left = vec![member];
        let mut read = read;
        while let Some(gone) = left.pop() {
            let state = world.members[gone].state;
            let succeeded = state == State::Succeeded;
            if ended(state) {
                world.members[gone].ends.0 = true;
                world.members[gone].ends.1 |= !succeeded;
            }
            if std::mem::replace(&mut world.members[gone].counted, true) && self.has(Fence::Counted)
            {
                continue;
            }
            for below in (0..MEMBERS).filter(|below| UPSTREAM[*below].contains(&gone)) {
                let below_it = &mut world.members[below];
                below_it.waits_for = below_it.waits_for.saturating_sub(1);
                below_it.unsuccessful += u8::from(!succeeded);
                let seen = &mut read[below];
                *seen = (seen.0.saturating_sub(1), seen.1 + u8::from(!succeeded));
                let decided = verdict(self.runs_when(below), seen.0.into(), seen.1.into());
                let Some(decided) = decided.filter(|_| !world.members[below].decided) else {
                    continue;
                };
                let early = !world.may(self.runs_when(below), below, decided);
                world.early |= early;
                let member = &mut world.members[below];
                member.decided = true;
                member.decisions += 1;
                if world.sessions.iter().flatten().any(|other| other.member == below) {
                    return false;
                }
                if decided == Verdict::Skip && member.state == State::Pending {
                    member.state = State::Skipped;
                    world.open -= 1;
                    left.push(below);
                }
            }
        }
        true
    }
}

/// A worker ends a member that is due.
fn end(world: &mut World, session: usize, member: usize, well: bool) -> bool {
    if !world.members[member].decided || world.members[member].state != State::Pending {
        return false;
    }
    lock(world, session, member, if well { State::Succeeded } else { State::Failed })
}

fn begin(world: &mut World, session: usize, member: usize, cause: Cause) -> bool {
    next(world.members[member].state, cause).is_some_and(|to| lock(world, session, member, to))
}

/// Locks the row and writes it; another session that has it locked is waited for.
fn lock(world: &mut World, session: usize, member: usize, to: State) -> bool {
    let busy = world.sessions[session].is_some()
        || world.sessions.iter().flatten().any(|other| other.member == member);
    if !busy {
        world.sessions[session] = Some(Session { member, to, read: None });
    }
    !busy
}

impl World {
    /// Whether the ends that there have been allow this decision.
    fn may(&self, runs_when: RunsWhen, member: usize, decided: Verdict) -> bool {
        let all = UPSTREAM[member].iter().map(|above| &self.members[*above]);
        let ended = all.clone().all(|above| above.ends.0);
        let one_failed = all.clone().any(|above| above.ends.1);
        match (runs_when, decided) {
            (RunsWhen::AllSucceeded, Verdict::Skip) | (RunsWhen::AnyFailed, Verdict::Run) => {
                one_failed
            }
            _ => ended,
        }
    }

    /// Whether nothing can go on without people.
    pub(super) fn is_ended(&self) -> bool {
        self.sessions.iter().all(Option::is_none) && (0..MEMBERS).all(|member| self.rests(member))
    }

    /// Whether a member has ended, is parked, or waits for one that is.
    fn rests(&self, number: usize) -> bool {
        let Member { state, decided, .. } = self.members[number];
        match state {
            State::Pending if decided => false,
            State::Pending => UPSTREAM[number]
                .iter()
                .any(|above| !ended(self.members[*above].state) && self.rests(*above)),
            _ => true,
        }
    }
}
