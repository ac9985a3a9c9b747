//! What scheduler and worker both do with the database and the broker, written once.
//!
//! - [`start_up`]: waits for a database that can be used, and tells an outage from a refused statement.
//! - [`link_readiness`]: shows a link to the broker in `/readyz`.
//! - [`heartbeat`]: says in the process's row that it is alive and ready.
//! - [`notifications`]: listens for news from the database.
//! - [`outbox`]: a ticket that a row has not published yet: its message, and its mark.
//! - [`lost_attempts`]: ends the attempts of workers that are gone.
//! - [`parked_log`]: the line that is logged of a parked execution.
//! - [`jitter`]: a pause, varied.
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
