//! The worker: opens tickets, runs their tasks under a lease, records how they ended.
//!
//! Reading order: [`worker`] assembles everything; `slot` takes a ticket; `write_batcher` writes for all slots
//! at once; `attempt` runs an open attempt to its record while `lease_renewer` renews its lease; [`executor`]
//! is the interface to what runs the task: a [`command`] under a [`guard`], an [`http`] request, an [`sql`]
//! statement, an [`email`], or a [`handler`] in another Rust program, which begins with [`Worker::builder`].
//!
//! A worker keeps nothing that matters in memory alone: killed at any instant, it leaves rows from which other
//! processes can continue.

mod attempt;
mod builder;
mod cancellation;
pub mod catalogue;
pub mod command;
mod completion;
mod consumer_liveness;
mod context;
pub mod email;
pub mod executor;
mod gate;
pub mod guard;
pub mod handler;
mod heartbeat;
pub mod http;
mod instance_lock;
mod lease_renewer;
mod noop;
mod outcome;
pub mod output;
mod parked_log;
mod program;
mod queue_health;
mod schema_cache;
pub mod secret;
mod slot;
pub mod sql;
pub mod tasks;
#[cfg(test)]
mod test_support;
pub mod testing;
pub mod worker;
mod write_batcher;

pub use sqlx;

pub use self::builder::{Worker, WorkerBuilder};
pub use self::handler::{Completion, Ctx, HandlerError, Transaction};
