//! PostgreSQL: the record of everything.
//!
//! All SQL of the project is here, one file per aggregate or protocol step. Each function is one statement or one
//! transaction; it returns the rows that it changed, and callers compare their number with the intended one.
//! Statements that touch several rows of `executions` lock them first, ordered by id and with `SKIP LOCKED`, so that
//! no two of them ever wait for each other; rows that another transaction has locked are missing from the result.
//!
//! **Time.** The database's clock alone decides what is due. Functions take `now:` [`Now`], which is `None` in
//! production and an instant in tests and simulations.
//!
//! **Crashes.** Nothing here talks to the broker. A statement that creates the duty to publish records it in the same
//! row (`ticket_published_at IS NULL`), so a process may die after any of these functions: the relay finds the
//! unpublished ticket.

pub mod attempts;
pub mod backfill;
pub mod bulk;
pub mod catch_up;
mod client_timeout;
pub mod completions;
pub mod connect;
pub mod cursors;
pub mod dedicated_connection;
pub mod doctor;
pub mod error;
pub mod exclusive_lock;
pub mod executions;
pub mod failures;
pub mod firing;
pub mod foreign;
pub mod gaps;
pub mod grants;
pub mod incidents;
pub mod instances;
pub mod jobs;
pub mod lease;
pub mod ledger;
pub mod lost_attempts;
pub mod measurement;
pub mod neighbours;
pub mod notifications;
pub mod offers;
pub mod open;
pub mod operator;
pub mod output;
pub mod parked_messages;
pub mod reconcile;
pub mod relay;
pub mod retention;
pub mod roles;
pub mod running_attempts;
pub mod schema;
pub mod scratch;
mod session;
mod session_settings;
pub mod settle;
pub mod status;
pub mod task;
pub mod tickets;
pub mod timeout;
pub mod trigger;
pub mod unknown_messages;
pub mod waiters;
pub mod workers;

use chrono::{DateTime, Utc};

pub use connect::{Store, StoreOptions};
pub use error::StoreError;

/// The instant that a statement uses; `None`: the database's clock.
pub type Now = Option<DateTime<Utc>>;

/// How long the relay leaves an unpublished ticket to the process that changed the row, in milliseconds.
pub const RELAY_DELAY_MS: i64 = 5_000;
