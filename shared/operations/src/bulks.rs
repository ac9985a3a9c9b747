//! Bulks: an action on many executions at once, which the schedulers carry out.
//!
//! [`request`] previews one and writes it down; from then on nobody who asked for it is needed. [`watch`] says how far
//! it is, [`control`] stops it or lets it go on. Where a job has a verify task, a few executions are requeued by a bulk as
//! well ([`verified_requeue`]), since the question takes a while; [`verify`] asks an operator's command instead.

pub mod blocked_questions;
pub mod control;
pub mod request;
pub mod verified_requeue;
pub mod verify;
pub mod verify_command;
pub mod watch;
