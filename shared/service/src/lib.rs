//! What every Sexton program needs around its work: settings, logs, an orderly end, health.
//!
//! - [`settings`]: the environment, read once, checked whole; the same table writes `--help` and
//!   `docs/reference/settings.md`.
//! - [`arguments`]: the command line of the programs that are configured only by the environment.
//! - [`telemetry`]: logs on standard error.
//! - [`lifecycle`]: soft and hard shutdown, and an exit status that tells a stop from a breakdown.
//! - [`health`]: `/livez`, `/readyz` and `/metrics`.
//! - [`metrics`]: what is counted, and the registry that `/metrics` answers.
//! - [`traces`]: spans, and the queue that sends them to a collector; off by default.
//! - [`reachability`]: logs an unreachable server once, once a minute, and once when it is back.
//! - [`clock`]: the only place that reads the wall clock.
//!
//! It knows neither PostgreSQL nor RabbitMQ nor jobs.

pub mod arguments;
pub mod clock;
pub mod fault;
pub mod health;
pub mod http_server;
pub mod lifecycle;
pub mod metrics;
pub mod reachability;
pub mod settings;
pub mod telemetry;
pub mod traces;
