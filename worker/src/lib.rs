//! The worker: opens tickets, runs their tasks under a lease, records how they ended.
//!
//! Reading order: [`worker`] puts everything together; `slot` takes a ticket; `journal` writes for
//! all slots at once; `attempt` runs an open attempt to its record while `keeper` renews its lease;
//! [`executor`] is the seam to what runs the task: a [`command`] under a [`guard`], an [`http`]
//! request, an [`sql`] statement, an [`email`], or a [`handler`] in a program of one's own, which begins
//! with [`Worker::builder`].
//!
//! A worker keeps nothing that matters in memory: killed at any instant, it leaves rows that others
//! can go on from.

mod attempt;
mod builder;
pub mod catalogue;
pub mod command;
mod completion;
mod consumption;
mod context;
pub mod email;
mod ending;
pub mod executor;
mod foreign;
mod gate;
pub mod guard;
pub mod handler;
pub mod http;
mod imposed;
mod journal;
mod keeper;
mod noop;
mod notice;
pub mod output;
mod program;
mod pulse;
mod queue_health;
mod seat;
pub mod secret;
mod slot;
pub mod sql;
pub mod tasks;
pub mod testing;
mod tls;
#[cfg(test)]
mod trial;
pub mod worker;

pub use sqlx;

pub use self::builder::{Worker, WorkerBuilder};
pub use self::handler::{Completion, Ctx, HandlerError, Transaction};
