//! `sexton serve`: what Sexton answers over HTTP.
//!
//! Level 3 of the workspace, over `operations`: the [`api`] and the [`pages`] of the console, by callers that [`access`] knows, and the [`pings`] of
//! foreign jobs. It needs PostgreSQL; status and doctor look at RabbitMQ, too, if the settings name it.
//!
//! Every number is limited: connections, the time and length of a head and a body, pings that wait for the database, pings of one check in a
//! minute. A request that cannot be answered soon gets 503 and when to come again.

pub mod access;
pub mod api;
pub mod base_path;
pub mod events;
mod first_run;
pub mod pages;
pub mod pings;
mod probe;
pub mod problem;
pub mod program;
pub mod rate_limit;
mod timing;
