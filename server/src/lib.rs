//! `sexton serve`: what Sexton answers over HTTP.
//!
//! Level 3 of the workspace, over `operations`. So far it accepts the pings of foreign jobs ([`pings`]); it needs PostgreSQL alone.
//!
//! Every number is limited: connections, the time and length of a head and a body, pings that wait for the database, pings of one check in a
//! minute. A request that cannot be answered soon gets 503 and when to come again.

pub mod pings;
mod probe;
pub mod program;
mod timing;
