//! The sweep of the failed queue, as in its code: take a message, *then* read its row.
//!
//! The failed queue is first in, first out: a pass takes the messages that were there when it began, and reaches
//! later ones only if somebody else has taken earlier ones.

use sexton_model::state::State;
use sexton_model::sweep::{ParkedRow, judge_message};

use crate::explorer::{Refused, take};
use crate::protocol::Protocol;
use crate::protocol::action::SweepStep;
use crate::protocol::fences::Part;
use crate::protocol::statements::real;
use crate::protocol::world::{HeldMessage, Number, Parked, Sweep, SweepOutcome, World};

impl Protocol {
    pub(crate) fn sweep(&self, world: &mut World, step: SweepStep) -> Result<bool, Refused> {
        let (mut left, mut seen, hand) = match (world.sweep, step) {
            (Sweep::Idle, SweepStep::Begin) => return Ok(begin(world)),
            (Sweep::Idle, _) => return Ok(false),
            (Sweep::Pass { left, seen, hand }, _) => (left, seen, hand),
        };
        let hand = match (step, hand) {
            (SweepStep::Get(kind), HeldMessage::Empty) if left > 0 => {
                let head = world.failed.len() > 0;
                let queue = if head { &mut world.failed } else { &mut world.tail };
                if !take(queue.of(kind)) {
                    return Ok(false);
                }
                HeldMessage::Got(kind)
            }
            (SweepStep::Judge, HeldMessage::Got(kind)) => {
                let fate = match ask(world, kind, seen) {
                    SweepOutcome::Remove => self.removal(),
                    fate => fate,
                };
                seen |= fate == SweepOutcome::Keep;
                HeldMessage::Judged(kind, fate)
            }
            (SweepStep::Fail, HeldMessage::Judged(kind, SweepOutcome::Fail)) => {
                // Whether it failed now or had moved on since it was read, the message is spent.
                world.fail_unopened(kind.number(), self.fences);
                let Sweep::Pass { hand: HeldMessage::Judged(kind, _), .. } = world.sweep else {
                    return Ok(false);
                };
                HeldMessage::Judged(kind, self.removal())
            }
            (SweepStep::Copy, HeldMessage::Judged(kind, SweepOutcome::Keep)) => {
                // A clean copy, without the broker's dead-letter reason.
                let copy = match kind.number() {
                    Number::Current => Parked::Plain,
                    Number::Overtaken => Parked::Overtaken,
                };
                world.put_parked(copy, self.bounds.copies)?;
                HeldMessage::Copied(kind)
            }
            (
                SweepStep::Ack,
                HeldMessage::Judged(_, SweepOutcome::Remove) | HeldMessage::Copied(_),
            ) => {
                left -= 1;
                HeldMessage::Empty
            }
            (SweepStep::Finish, HeldMessage::Empty) => return Ok(self.finish(world, left, seen)),
            _ => return Ok(false),
        };
        world.sweep = Sweep::Pass { left, seen, hand };
        Ok(true)
    }

    /// Returns the outcome for an outdated message.
    fn removal(&self) -> SweepOutcome {
        if self.fences.works(Part::SweepRemoves) {
            SweepOutcome::Remove
        } else {
            SweepOutcome::Keep
        }
    }

    fn finish(&self, world: &mut World, left: u8, seen: bool) -> bool {
        if left > 0 && world.failed.len() + world.tail.len() > 0 {
            return false;
        }
        let row = &world.row;
        let unseen = row.state == State::Failed && !row.unpublished && !row.marked_in_pass && !seen;
        if left == 0 && unseen && row.claimed && self.fences.works(Part::SweepRepublishes) {
            world.republish();
        }
        world.end_pass();
        true
    }
}

/// A pass is due when the numbers do not match, and once an hour when the queue has any message.
fn begin(world: &mut World) -> bool {
    let published = world.row.claimed && world.row.state == State::Failed && !world.row.unpublished;
    let left = world.failed.len();
    if left == 0 && !published {
        return false;
    }
    world.sweep = Sweep::Pass { left, seen: false, hand: HeldMessage::Empty };
    world.row.marked_in_pass = false;
    true
}

fn ask(world: &World, kind: Parked, seen: bool) -> SweepOutcome {
    let row = ParkedRow { state: world.row.state, attempt: real(Number::Current) };
    let note = (kind == Parked::Noted).then_some("delivery_limit");
    judge_message(real(kind.number()), world.row.claimed.then_some(row), note, seen).into()
}

impl World {
    /// Ends the pass.
    pub(crate) fn end_pass(&mut self) {
        self.sweep = Sweep::Idle;
        self.failed = self.failed.and(std::mem::take(&mut self.tail));
        self.failed.forget();
        self.row.marked_in_pass = false;
    }
}
