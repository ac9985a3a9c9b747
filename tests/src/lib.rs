//! The harness: what the tests of `tests/it` and the demo stand on.
//!
//! Every integration test runs against a real PostgreSQL and a real RabbitMQ, with a database and a
//! namespace of its own, so that tests run in parallel and leave nothing behind. The harness provides
//! them; the tests hold the claims.
//!
//! - [`factory`] makes rows in any state.
//! - [`failed`] fills a database with failures, and asks of it what operators ask.
//! - [`demo`] is what `make demo`, `make up` and `make down` do.
//! - [`namespace`] gives a test its own RabbitMQ namespace and deletes it afterwards.
//! - [`platform`] runs the real programs, each test's on a database and a namespace of its own.
//! - [`proxy`] loses, delays and cuts what a program and a server say to each other.
//! - [`simulation`] runs the store's statements in orders drawn from a seed, with faults in between.
//! - [`torture`] strikes faults under load, at large in `make torture` and in little in a test.
//! - [`commit`] and [`reliability`] are for the records that long runs leave in the documents.
//! - [`relaying`] takes what the relay would take.
//! - [`retention`] removes what is old, without the pruner's rests.
//! - [`soak`] is what `make soak` does: a steady load, and a judgement of what grows.
//! - [`servers`] finds, starts, kills and stops the two servers. The binary `with-servers` is its face
//!   on the command line: it runs a command, such as `cargo test`, with both servers in its
//!   environment.
//!
//! Nothing in here replaces a server by an imitation, and nothing waits by sleeping: a wait is for an
//! event, with a deadline.

pub mod commit;
pub mod database;
pub mod demo;
pub mod factory;
pub mod failed;
pub mod namespace;
pub mod platform;
pub mod proxy;
pub mod relaying;
pub mod reliability;
pub mod retention;
pub mod simulation;
pub use sexton_servers as servers;
pub mod soak;
pub mod torture;
