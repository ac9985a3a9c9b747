//! What each command does: ask, decide what to say, say it.

pub mod cron;
pub mod executions;
pub mod failed;
mod instant;
pub mod jobs;
pub mod migrate;
mod reference;
pub mod status;
