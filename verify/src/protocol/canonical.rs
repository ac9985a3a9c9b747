//! One state for all indistinguishable ones.
//!
//! Four reductions, each of which leaves out only steps that change nothing:
//!
//! - **Names.** Two workers with the same task types, and two schedulers, differ by name only.
//! - **Steps without effect.** A mark of an old revision, and the acknowledgement of a lost delivery, do nothing; a
//!   process with only that left to do is idle.
//! - **The database's clock on a lease**, which no decision uses.
//! - **Unread numbers.** The number on a ticket that the broker no longer counts as delivered is not read after the
//!   settlement.

use crate::protocol::Protocol;
use crate::protocol::fences::Fence;
use crate::protocol::world::{Holder, Number, Scheduler, Step, Worker, World};

impl Protocol {
    /// Returns `world` with interchangeable workers and schedulers in a canonical order.
    pub(crate) fn without_names(&self, mut world: World) -> World {
        let alike = self.bounds.offers[0] == self.bounds.offers[1];
        if alike && world.workers[0] > world.workers[1] {
            world.workers.swap(0, 1);
            if let Holder::Worker(who) = &mut world.row.holder {
                *who = 1 - *who;
            }
        }
        let [first, second] = &mut world.schedulers;
        if self.bounds.schedulers == 2 && *first > *second {
            std::mem::swap(first, second);
        }
        world
    }

    /// Returns `world` without steps and numbers that have no effect any more; every process keeps its name.
    pub(crate) fn without_spent_steps(&self, mut world: World) -> World {
        if self.fences.has(Fence::TicketPublishedAt) {
            for scheduler in &mut world.schedulers {
                if *scheduler == Scheduler::Published(false) {
                    *scheduler = Scheduler::Idle;
                }
            }
        }
        if self.fences.has(Fence::Observation) {
            world.row.clock_ahead = false;
        }
        for worker in &mut world.workers {
            self.settle_down(worker);
        }
        world
    }

    fn settle_down(&self, worker: &mut Worker) {
        if worker.step == Step::Published(false) && self.fences.has(Fence::TicketPublishedAt) {
            worker.step = Step::Acking;
        }
        if worker.delivery {
            return;
        }
        match worker.step {
            Step::Acking => *worker = Worker::IDLE,
            Step::Settled(_) | Step::Published(_) => worker.number = Number::Current,
            _ => {}
        }
    }
}
