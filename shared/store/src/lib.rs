//! PostgreSQL: the record of everything.
//!
//! All SQL of the project is here, one file per aggregate or protocol step. Each function is one
//! statement or one transaction; it returns what it changed, and callers compare the count with what
//! they meant to change. Statements that touch several rows of `executions` lock them first, ordered
//! by id and with `SKIP LOCKED`, so that no two of them ever wait for each other; a row that was
//! locked by somebody else is simply not among the answers.
//!
//! **Time.** The database's clock alone decides what is due. Functions take `now:` [`Now`], which is
//! `None` in production and an instant in tests and simulations.
//!
//! **Crashes.** Nothing here talks to the broker. A statement that creates the duty to publish
//! records it in the same row (`ticket_published_at IS NULL`), so a process may die after any of
//! these functions: the relay finds the debt.

pub mod answer;
pub mod attempts;
pub mod backfill;
mod bounded;
pub mod bulk;
pub mod catch_up;
pub mod connect;
pub mod cursors;
pub mod doctor;
pub mod error;
pub mod exclusive;
pub mod executions;
pub mod firing;
pub mod foreign;
pub mod gaps;
pub mod grants;
pub mod graveyard;
pub mod incidents;
pub mod instances;
pub mod jobs;
pub mod lease;
pub mod ledger;
pub mod listen;
pub mod lost;
pub mod measured;
pub mod offers;
pub mod open;
pub mod operator;
pub mod output;
pub mod own;
pub mod parked;
pub mod raw;
pub mod reconcile;
pub mod relay;
pub mod retention;
pub mod running;
pub mod schema;
pub mod scratch;
mod session;
mod session_settings;
pub mod settle;
pub mod status;
pub mod task;
pub mod tickets;
pub mod trigger;
pub mod waiters;

use chrono::{DateTime, Utc};

pub use connect::{Store, StoreOptions};
pub use error::StoreError;

/// The instant a statement works with: `None` is the database's own clock.
pub type Now = Option<DateTime<Utc>>;

/// How long a process that changes a row has for publishing the ticket itself, in milliseconds,
/// before the relay does it.
pub const HEAD_START_MS: i64 = 5_000;
