//! Vocabulary and decisions of Sexton.
//!
//! Level 0 of the workspace: pure functions of values and an explicit `now`. Nothing here talks to PostgreSQL or
//! RabbitMQ, reads a clock or draws a random number, so everything here can be tested as a table and checked as a
//! model.

// A job has as many columns as one `json!` takes otherwise.
#![recursion_limit = "256"]

pub mod access;
pub mod alerts_file;
pub mod approval;
pub mod audit_chain;
pub mod bulk;
pub mod bulk_item;
pub mod channel;
pub mod check;
pub mod checks_file;
pub mod cron;
pub mod dead_man;
pub mod delay_queues;
pub mod duration;
pub mod exact_json;
pub mod execution_filter;
pub mod explain;
pub mod failures;
pub mod fingerprint;
pub mod flow;
pub mod flow_control;
pub mod foreign;
mod hash;
pub mod heartbeat;
pub mod id;
pub mod incident;
pub mod job;
pub mod job_scope;
pub mod jobs_file;
pub mod key;
pub mod lease;
pub mod lint;
pub mod lock_key;
pub mod log_throttle;
pub mod moment;
pub mod monitor;
pub mod network;
pub mod notification;
pub mod oidc;
pub mod open;
pub mod outage;
pub mod output;
pub mod params;
pub mod params_schema;
pub mod parked_task;
pub mod plan;
pub mod policy;
pub mod pool;
pub mod progress;
pub mod queue_incident;
pub mod quoting;
pub mod rate;
pub mod remedy;
pub mod result;
pub mod retry;
pub mod routing;
pub mod secret_ref;
pub mod size;
pub mod state;
mod steps;
pub mod suggest;
pub mod sweep;
pub mod target_url;
pub mod template;
mod text_enum;
pub mod ticket;
pub mod time_jump;
pub mod trace_ids;
pub mod verify_task;
pub mod zone;
