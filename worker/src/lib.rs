//! The worker: opens tickets, runs their tasks under a lease, records how they ended.
//!
//! Reading order: [`worker`] puts everything together; `slot` takes a ticket; `journal` writes for
//! all slots at once; `attempt` runs an open attempt to its record while `keeper` renews its lease;
//! [`executor`] is the seam to what runs the task, [`command`] the one way so far, under a [`guard`].
//!
//! A worker keeps nothing that matters in memory: killed at any instant, it leaves rows that others
//! can go on from.

mod attempt;
pub mod catalogue;
pub mod command;
mod context;
mod ending;
pub mod executor;
mod gate;
pub mod guard;
mod journal;
mod keeper;
pub mod output;
mod pulse;
mod seat;
mod slot;
pub mod tasks;
pub mod worker;
