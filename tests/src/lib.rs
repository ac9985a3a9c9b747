//! The harness of the tests in `tests/it` and of the demo.
//!
//! Every integration test runs against a real PostgreSQL and a real RabbitMQ, with its own database
//! and namespace, so that tests run in parallel and leave nothing behind. The harness provides
//! them; the tests make the assertions.
//!
//! - [`charge`] is a job that a producer and a worker share by its type.
//! - [`factory`] makes rows in any state.
//! - [`failed`] fills a database with failures, and runs operators' queries of them.
//! - [`demo`] is `make demo`, `make demo-clients`, `make up` and `make down`.
//! - [`example_service`] runs the services of `examples/` in other languages.
//! - [`namespace`] gives a test its own RabbitMQ namespace and deletes it afterwards.
//! - [`platform`] runs the real programs, for each test in its own database and namespace.
//! - [`proxy`] loses, delays and cuts the traffic between a program and a server.
//! - [`simulation`] runs the store's statements in orders drawn from a seed, with faults in between.
//! - [`torture`] strikes faults under load, in large numbers in `make torture` and a few in a test.
//! - [`commit`] and [`reliability`] are for the records that long runs leave in the documents.
//! - [`relaying`] takes the tickets that the relay would take.
//! - [`retention`] removes old rows without the pruner's pauses.
//! - [`routes`] are the routes of the console's pages.
//! - [`soak`] is `make soak`: a steady load, and a verdict on what grows.
//! - [`untested`] reports what a machine cannot test.
//! - [`virtual_host`] gives a test a part of a RabbitMQ to set policies in.
//! - [`servers`] finds, starts, kills and stops the two servers. The binary `with-servers` makes it
//!   usable on the command line: it runs a command, such as `cargo test`, with both servers in its
//!   environment.
//!
//! Nothing here imitates a server, and nothing waits by sleeping: a wait is for an event, with a deadline.

mod admin;
pub mod charge;
pub mod commit;
pub mod database;
pub mod demo;
pub mod example_service;
pub mod factory;
pub mod failed;
pub mod namespace;
pub mod openapi_changes;
pub mod platform;
pub mod proxy;
pub mod relaying;
pub mod reliability;
pub mod retention;
pub mod routes;
pub mod simulation;
pub use sexton_servers as servers;
pub mod soak;
pub mod torture;
pub mod untested;
pub mod virtual_host;
