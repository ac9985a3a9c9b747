//! The worker: opens tickets, runs their tasks under a lease, records how they ended.
//!
//! Reading order: [`worker`] puts everything together; `slot` takes a ticket; `journal` writes for
//! all slots at once; `attempt` runs an open attempt to its record while `keeper` renews its lease;
//! [`executor`] is the seam to what runs the task: a [`command`] under a [`guard`], an [`http`]
//! request, or an [`email`].
//!
//! A worker keeps nothing that matters in memory: killed at any instant, it leaves rows that others
//! can go on from.

mod attempt;
pub mod catalogue;
pub mod command;
mod completion;
mod consumption;
mod context;
pub mod email;
mod ending;
pub mod executor;
mod gate;
pub mod guard;
pub mod http;
mod imposed;
mod journal;
mod keeper;
pub mod output;
mod pulse;
mod seat;
pub mod secret;
mod slot;
pub mod sql;
pub mod tasks;
mod tls;
pub mod worker;
