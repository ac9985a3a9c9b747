//! What each command does: ask, decide what to say, say it.

pub mod audit;
pub mod bench;
pub mod bulks;
pub mod cron;
pub mod doctor;
pub mod executions;
pub mod failed;
pub mod groups;
pub mod jobs;
pub mod migrate;
mod report;
pub mod status;
pub mod unknown_messages;
