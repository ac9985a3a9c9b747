//! Pings of foreign jobs, by the addresses that clients of Healthchecks use.
//!
//! A ping is answered with 200 only after it is durable. Those that arrive together are written together ([`recorder`]), so that thousands a
//! second need few commits.

pub mod address;
pub mod recorder;
pub mod routes;
