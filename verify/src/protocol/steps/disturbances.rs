//! Disturbances: faults, and people with the command or with an AMQP tool.

use sexton_model::state::{Cause, State};

use crate::explorer::{Refused, take};
use crate::protocol::Protocol;
use crate::protocol::action::{Fault, OperatorAction};
use crate::protocol::statements::Opening;
use crate::protocol::world::{
    Ending, FailedQueue, HeldMessage, Holder, Number, Parked, Queue, Scheduler, Step, Sweep,
    Tickets, World,
};

impl Protocol {
    pub(crate) fn strike(&self, world: &mut World, fault: Fault) -> Result<bool, Refused> {
        let limit = self.bounds.copies;
        Ok(match fault {
            Fault::WorkerDies(who) => return self.kill_worker(world, usize::from(who)),
            Fault::SchedulerDies(who) => {
                let loops = &mut world.schedulers[usize::from(who)];
                let busy = matches!(loops, Scheduler::Holding(_) | Scheduler::Published(_));
                *loops = if busy { Scheduler::Idle } else { *loops };
                busy
            }
            Fault::SweepDies => kill_sweep(world),
            Fault::ConnectionLost(who) => {
                let worker = &mut world.workers[usize::from(who)];
                let held = std::mem::replace(&mut worker.delivery, false);
                if held {
                    world.main.put(worker.number, limit)?;
                }
                held
            }
            Fault::OpenUnanswered(who) => {
                let who = usize::from(who);
                world.workers[who].step == Step::Received
                    && world.row.claimed
                    && world.open(who, self.bounds.offers[who], self.fences) != Opening::Nothing
            }
            Fault::StartUnanswered(who) => {
                let who = usize::from(who);
                let starts = world.workers[who].step == Step::Opened;
                if starts {
                    world.leave(who, Holder::Left);
                    world.workers[who].step = Step::Acking;
                }
                starts
            }
            Fault::SettleUnanswered(who) => {
                let who = usize::from(who);
                let Step::Ran(ending) = world.workers[who].step else { return Ok(false) };
                world.settle(who, ending, self.fences)
            }
            Fault::ConfirmLost(who) => return self.lose_confirm(world, usize::from(who)),
            Fault::PublishFails(who) => {
                let worker = &mut world.workers[usize::from(who)];
                let has_ticket = matches!(worker.step, Step::Settled(_));
                worker.step = if has_ticket { Step::Acking } else { worker.step };
                has_ticket
            }
            Fault::CutOff(who) => {
                let step = &mut world.workers[usize::from(who)].step;
                let runs = *step == Step::Running { cut: false };
                *step = if runs { Step::Running { cut: true } } else { *step };
                runs
            }
            Fault::Stop(who) => return self.stop(world, usize::from(who)),
            Fault::ReleasedEarly => {
                let early = matches!(world.row.state, State::Pending | State::Retrying)
                    && !world.row.due
                    && take(&mut world.delayed.current);
                if early {
                    world.main.put(Number::Current, limit)?;
                }
                early
            }
            Fault::ParkedByBroker(number) => {
                let parked = world.row.claimed && take(world.main.of(number));
                if parked {
                    world.put_parked(noted(number), limit)?;
                }
                parked
            }
            Fault::Doubled(number) => {
                let there = *world.main.of(number) > 0;
                if there {
                    world.main.put(number, limit)?;
                }
                there
            }
            // A foreign message that was not adopted exists nowhere else, and is not Sexton's to keep.
            Fault::Wiped => world.row.claimed && wipe(world),
            // It can also be set back, or stop; then it says less often that a lease is over.
            Fault::ClockAhead => {
                let row = &mut world.row;
                row.state == State::Running && !std::mem::replace(&mut row.clock_ahead, true)
            }
            Fault::Refused(who) => {
                let who = usize::from(who);
                let moves = matches!(world.workers[who].step, Step::Moving(_)) && world.row.claimed;
                if moves {
                    // The message is spent in any case.
                    world.hand_back(world.workers[who].number, self.fences);
                    world.workers[who].step = Step::Acking;
                }
                moves
            }
            Fault::WrongGuess => {
                let guess = world.seems_lost();
                if guess {
                    world.republish();
                }
                guess
            }
        })
    }

    fn kill_worker(&self, world: &mut World, who: usize) -> Result<bool, Refused> {
        if world.workers[who].step == Step::Idle {
            return Ok(false);
        }
        // Its guard kills the task at once; none of its processes survives.
        world.leave(who, Holder::Dead);
        self.give_back(world, who)
    }

    /// A stopping worker returns unopened tickets and interrupts its task.
    fn stop(&self, world: &mut World, who: usize) -> Result<bool, Refused> {
        match world.workers[who].step {
            Step::Received | Step::Moving(_) => self.give_back(world, who),
            Step::Running { .. } => {
                world.workers[who].step = Step::Ran(Ending::Interrupted);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The copy is in its queue. A settled worker leaves the mark to others; one that moves a ticket on publishes it
    /// once more.
    fn lose_confirm(&self, world: &mut World, who: usize) -> Result<bool, Refused> {
        let number = world.workers[who].number;
        match world.workers[who].step {
            Step::Settled(ticket) => {
                world.publish(ticket.to, ticket.number, self.bounds.copies)?;
                world.workers[who].step = Step::Acking;
            }
            Step::Moving(to) => world.publish(to, number, self.bounds.copies)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(crate) fn apply_operator_action(
        &self,
        world: &mut World,
        operator_action: OperatorAction,
    ) -> Result<bool, Refused> {
        let limit = self.bounds.copies;
        let state = world.row.state;
        Ok(match operator_action {
            OperatorAction::Requeue => world.operate(Cause::Requeue, self.fences),
            OperatorAction::Discard => world.operate(Cause::Discard, self.fences),
            OperatorAction::Restore => world.operate(Cause::Restore, self.fences),
            OperatorAction::Cancel if state == State::Running => {
                !std::mem::replace(&mut world.row.cancel, true)
            }
            OperatorAction::Cancel => world.operate(Cause::Cancel, self.fences),
            OperatorAction::MoveBack(kind) => {
                let moved = world.take_parked(kind);
                if moved {
                    world.main.put(kind.number(), limit)?;
                    // The pass may then meet its own copy, and take it for a second one.
                    world.excused |= world.sweep != Sweep::Idle;
                }
                moved
            }
            OperatorAction::CopyBack(kind) => {
                let there = *world.failed.of(kind) + *world.tail.of(kind) > 0;
                if there {
                    world.main.put(kind.number(), limit)?;
                }
                there
            }
            OperatorAction::MoveAway(number) => {
                let moved = world.row.claimed && take(world.main.of(number));
                if moved {
                    world.publish(Queue::Failed, number, limit)?;
                    world.excused = true;
                }
                moved
            }
        })
    }
}

fn noted(number: Number) -> Parked {
    match number {
        Number::Current => Parked::Noted,
        Number::Overtaken => Parked::Overtaken,
    }
}

/// The sweep's message returns to its position.
fn kill_sweep(world: &mut World) -> bool {
    let Sweep::Pass { hand, .. } = world.sweep else { return false };
    if let HeldMessage::Got(kind) | HeldMessage::Judged(kind, _) | HeldMessage::Copied(kind) = hand
    {
        *world.failed.of(kind) += 1;
    }
    world.end_pass();
    true
}

/// Queues and deliveries are lost; processes go on.
fn wipe(world: &mut World) -> bool {
    (world.main, world.delayed) = (Tickets::default(), Tickets::default());
    (world.failed, world.tail) = (FailedQueue::default(), FailedQueue::default());
    for worker in &mut world.workers {
        worker.delivery = false;
    }
    world.end_pass();
    world.excused = true;
    true
}
