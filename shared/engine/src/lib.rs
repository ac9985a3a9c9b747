//! The steps with the database and the broker that scheduler and worker share.
//!
//! - [`start_up`]: waits for a usable database, and distinguishes an outage from a refused statement.
//! - [`link_readiness`]: shows a link to the broker in `/readyz`.
//! - [`heartbeat`]: records in the process's row that it is alive and ready.
//! - [`notifications`]: listens for notifications of the database.
//! - [`outbox`]: the message of an unpublished ticket, and its mark.
//! - [`lost_attempts`]: ends the attempts of dead workers.
//! - [`parked_log`]: logs a parked execution.
//! - [`traces`]: the places of an execution's steps in their traces.
//! - [`jitter`]: adds jitter to a pause.
//!
//! Level 2 of the workspace: it uses store, broker and service, and decides nothing that `sexton_model` decides.

pub mod heartbeat;
pub mod jitter;
pub mod link_readiness;
pub mod lost_attempts;
pub mod notifications;
pub mod outbox;
pub mod parked_log;
pub mod start_up;
pub mod traces;
