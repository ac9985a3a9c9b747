//! Channels, routes, and the notifications that go to channels.
//!
//! [`config`] replaces channels and routes by those of a file. A sender takes what is due with [`claim`], sends it, and records
//! with [`outcome`] what became of it. [`list`](mod@list) and [`requeue`] are for operators.
//!
//! **Order.** One message is under way to a channel at a time: a claim moves the channel's `next_send_at` to the end of its lease.
//! A notification follows the earlier ones of its incident. **Crashes.** A claim is committed before anything is sent, so a crash in
//! between leaves notifications that are due again when the lease is over, under the same ids.

pub mod claim;
pub mod config;
mod due;
pub mod list;
pub mod outcome;
pub mod requeue;
