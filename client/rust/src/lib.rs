//! Enqueues executions of Sexton's jobs in the caller's own PostgreSQL transaction.
//!
//! The execution exists if the transaction commits, and does not if it rolls back; there is nothing in between, whatever
//! crashes. The platform's tables live in the schema `sexton` of the same database, and this crate calls its SQL functions.
//! It computes no keys, knows no tables, and needs no connection to RabbitMQ. (The feature `testing` adds helpers for
//! tests, which read two tables.)
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use serde::{Deserialize, Serialize};
//! use sexton_client::{Client, Enqueue, Job};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Charge {
//!     order: i64,
//!     cents: i64,
//! }
//!
//! impl Job for Charge {
//!     const NAME: &'static str = "billing.charge";
//! }
//!
//! async fn place_order(pool: &sqlx::PgPool, order: i64) -> Result<(), Box<dyn std::error::Error>> {
//!     let mut tx = pool.begin().await?;
//!     sqlx::query("UPDATE orders SET placed = true WHERE id = $1").bind(order).execute(&mut *tx).await?;
//!     let charge = Charge { order, cents: 4_900 };
//!     let enqueue = Enqueue::job(&charge)?.key(format!("order-{order}")).delay(Duration::from_secs(60));
//!     let enqueued = Client::new().enqueue(&mut tx, &enqueue).await?;
//!     tx.commit().await?;
//!     println!("{} {}", enqueued.execution_id, if enqueued.created { "is new" } else { "was there" });
//!     Ok(())
//! }
//! ```
//!
//! # Keys
//!
//! Without a key each call makes an execution. With one, [`UniqueFor`] says for how long the key stands for one execution,
//! and [`IfExists`] what becomes of an execution that is there. A duplicate is an answer, never an error: the caller's
//! transaction goes on.
//!
//! # When it starts
//!
//! Workers start it after the commit: usually milliseconds later, and within about a second if the notification is lost. A
//! transaction that is to be prepared (`PREPARE TRANSACTION`) must not notify: call `SET LOCAL sexton.notify = off` in it
//! first. Do the same where many transactions commit at once, since commits that notify wait for each other.
//!
//! # One type for both sides
//!
//! A [`Job`] is the type of the params, and has the names of the job and its task. A worker written in Rust registers its
//! handler by the same type (`Worker::builder().job(charge)` of the crate `sexton-worker`), so put it into a crate that both
//! depend on.
//!
//! # Limits
//!
//! Keys have at most 256 bytes, params with those of the job 256 KiB and 64 levels, labels 50 entries; an execution
//! is enqueued for at most 400 days ahead.

mod client;
mod enqueue;
mod error;
mod execution;
#[cfg(feature = "testing")]
pub mod testing;

pub use client::{Client, Enqueued, MAX_BATCH};
pub use enqueue::{Enqueue, IfExists, Job, UniqueFor};
pub use error::{Error, Refusal};
pub use execution::{Cancelled, Demand, Execution, State, WaitError};
