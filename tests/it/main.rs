//! All integration tests, in one binary: each further one would be linked again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where it stands")]

mod alerts;
mod api;
mod bad_input;
mod broker;
mod chaos;
mod checks;
mod cli;
mod console;
mod demo;
pub(crate) mod docs;
mod doctor;
mod enqueue;
mod failed;
mod flows;
mod guard;
mod guard_interop;
mod guard_ticks;
mod keys;
mod locks;
mod metrics;
mod network;
mod operator_actions;
mod process;
mod scheduler;
mod soak;
mod store;
mod traces;
mod unknown_messages;
mod worker;
