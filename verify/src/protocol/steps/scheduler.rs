//! A scheduler's steps with a ticket: claim or take, publish, mark.

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
        let ticket =
            |to| Scheduler::Holding(UnpublishedTicket { number: Number::Current, fresh: true, to });
        world.schedulers[who] = match (step, world.schedulers[who]) {
            (SchedulerStep::Claim, Scheduler::Planned) => {
                let known = world.row.claimed;
                world.claim(true, self.fences);
                if known { Scheduler::Idle } else { ticket(Queue::Main) }
            }
            (SchedulerStep::Take, Scheduler::Idle)
                if world.row.unpublished && !world.row.held && self.fences.works(Part::Relay) =>
            {
                world.row.held = true;
                ticket(world.destination())
            }
            (SchedulerStep::Publish, Scheduler::Holding(ticket)) => {
                world.publish(ticket.to, ticket.number, self.bounds.copies)?;
                Scheduler::Published(ticket.fresh)
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
