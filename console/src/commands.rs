//! The commands: each calls an operation and prints its answer.

pub mod alerts;
pub mod audit;
pub mod bench;
pub mod bulks;
pub mod channels;
pub mod checks;
pub mod completions;
pub mod cron;
pub mod doctor;
pub mod enqueue;
pub mod executions;
pub mod failed;
pub mod flows;
pub mod groups;
pub mod incidents;
pub mod jobs;
pub mod keys;
pub mod locks;
pub mod migrate;
pub mod monitors;
mod report;
pub mod serve;
pub mod status;
mod timeline;
pub mod tokens;
pub mod unknown_messages;
pub mod workers;
