//! A scheduler's way of a ticket: claim or take, publish, mark.

use crate::explorer::Refused;
use crate::protocol::Protocol;
use crate::protocol::action::SchedulerStep;
use crate::protocol::fences::Part;
use crate::protocol::world::{Number, Queue, Scheduler, UnpublishedTicket, World};

impl Protocol {
    pub(crate) fn scheduler(
        &self,
        world: &mut World,
        who: usize,
        step: SchedulerStep,
    ) -> Result<bool, Refused> {
        if who >= usize::from(self.bounds.schedulers) {
            return Ok(false);
        }
        let debt =
            |to| Scheduler::Holding(UnpublishedTicket { number: Number::Current, fresh: true, to });
        world.schedulers[who] = match (step, world.schedulers[who]) {
            (SchedulerStep::Claim, Scheduler::Planned) => {
                let known = world.row.claimed;
                world.claim(true, self.fences);
                if known { Scheduler::Idle } else { debt(Queue::Main) }
            }
            (SchedulerStep::Take, Scheduler::Idle)
                if world.row.owed && !world.row.held && self.fences.works(Part::Relay) =>
            {
                world.row.held = true;
                debt(world.destination())
            }
            (SchedulerStep::Publish, Scheduler::Holding(debt)) => {
                world.publish(debt.to, debt.number, self.bounds.copies)?;
                Scheduler::Published(debt.fresh)
            }
            (SchedulerStep::Mark, Scheduler::Published(fresh)) => {
                world.mark(fresh, self.fences);
                Scheduler::Idle
            }
            _ => return Ok(false),
        };
        Ok(true)
    }
}
