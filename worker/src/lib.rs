//! The worker: opens tickets, runs their tasks under a lease, records how they ended.
//!
//! Reading order: [`worker`] assembles everything; `slot` takes a ticket; `write_batcher` writes for all slots
//! at once; `attempt` runs an open attempt to its record while its `lease_renewer` renews the lease; [`executor`]
//! runs the task: a [`command`](executor::command) under a [`guard`], an [`http`](executor::http) request, an
//! [`sql`](executor::sql) statement, an [`email`](executor::email), or a [`handler`] in another Rust program, which begins with [`Worker::builder`].
//!
//! A worker keeps nothing that matters in memory alone: killed at any instant, it leaves rows from which other
//! processes can continue.

mod attempt;
mod builder;
pub mod catalogue;
mod consumer_liveness;
mod context;
pub mod executor;
mod gate;
pub mod guard;
pub mod handler;
mod heartbeat;
mod instance_lock;
mod job_locks;
pub mod output;
mod parked_log;
mod program;
mod queue_health;
mod schema_cache;
mod slot;
pub mod tasks;
pub mod testing;
pub mod worker;
mod write_batcher;

pub use sexton_client::Job;
pub use sqlx;

pub use self::builder::{Worker, WorkerBuilder};
pub use self::handler::{Completion, Ctx, HandlerError, Transaction};
