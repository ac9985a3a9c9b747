//! Heartbeats: reports of jobs to outside watchers.
//!
//! A trigger writes a heartbeat in the transaction of what it reports. A sender takes the first ones of an address with
//! [`claim`](claim::claim), sends them, and records with [`outcome`] what became of them. [`expire`](expire::expire) drops what is
//! too old.
//!
//! **Order.** A heartbeat is claimed only when no earlier one of its job waits, so a start arrives before its end. **Fairness.** A
//! claim moves the address's `next_send_at` to the end of its lease, so one claim is under way to an address at a time, and one that
//! does not answer delays no other. **Crashes.** A claim is committed before anything is sent, so a crash in between leaves
//! heartbeats that are due again when the lease is over.

pub mod claim;
pub mod expire;
pub mod outcome;
pub mod undelivered;
