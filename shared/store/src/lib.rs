//! PostgreSQL: the record of everything.
//!
//! All SQL of the project is here, a folder for each aggregate, with a file for each step of the protocol. Each function
//! is one statement or one transaction; it returns the rows that it changed, and callers compare their number with the intended one.
//! Statements that touch several rows of `executions` lock them first, ordered by id and with `SKIP LOCKED`, so that
//! no two of them ever wait for each other; rows that another transaction has locked are missing from the result.
//!
//! **Time.** The database's clock alone decides what is due. Functions take `now:` [`Now`], which is `None` in
//! production and an instant in tests and simulations.
//!
//! **Crashes.** Nothing here talks to the broker. A statement that creates the duty to publish records it in the same
//! row (`ticket_published_at IS NULL`), so a process may die after any of these functions: the relay finds the
//! unpublished ticket.

pub mod accounts;
pub mod alerts;
pub mod approvals;
pub(crate) mod approved;
pub mod attempts;
pub mod backfill;
pub mod bulk;
pub mod changes;
pub mod checks;
pub mod completions;
mod connection;
pub mod edits;
pub mod enqueue;
pub mod error;
pub mod executions;
pub mod failures;
mod filter_values;
pub mod firing;
pub mod flows;
pub mod foreign;
pub mod heartbeats;
pub mod incidents;
pub mod jobs;
pub mod ledger;
pub mod ledger_check;
pub mod lock_holder;
pub mod lock_keys;
pub mod locks;
pub mod monitors;
pub mod neighbours;
pub mod notifications;
pub mod operator;
pub mod parked_messages;
mod platform;
mod platform_keys;
pub mod request_keys;
pub mod retention;
pub mod schema;
pub mod sessions;
pub mod tickets;
pub mod tokens;
pub mod trigger;
pub mod unknown_messages;
pub mod workers;

use chrono::{DateTime, Utc};

pub use attempts::lost as lost_attempts;
pub use attempts::running as running_attempts;
pub use attempts::{lease, open, output, settle, task};
pub use connection::dedicated as dedicated_connection;
pub use connection::{Store, StoreOptions, exclusive_lock, scratch, timeout};
pub use error::StoreError;
pub use firing::{catch_up, cursors, gap_list, gaps};
pub use platform::{
    dead_man, doctor, instances, job_readings, measurement, offers, queue_incidents, readings,
    status,
};
pub use schema::{grants, roles};
pub use tickets::{reconcile, relay, waiters};

/// The instant that a statement uses; `None`: the database's clock.
pub type Now = Option<DateTime<Utc>>;

/// How long the relay leaves an unpublished ticket to the process that changed the row, in milliseconds.
pub const RELAY_DELAY_MS: i64 = 5_000;
