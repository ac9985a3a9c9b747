//! All integration tests, in one binary: each further one would be linked again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where it stands")]

mod amends;
mod bad_input;
mod broker;
mod cli;
mod demo;
pub(crate) mod docs;
mod doctor;
mod graveyard;
mod network;
mod process;
mod raw;
mod scheduler;
mod servers;
mod simulation;
mod soak;
mod store;
mod torture;
mod worker;
