//! Torture: faults under load, thousands of them, on the real programs and the real servers.

mod alarms;
mod arena;
mod broker_client;
pub mod bulk_fences;
pub mod command;
mod effects;
pub mod fault;
pub mod fence_off;
pub mod fences;
mod final_check;
mod jobs;
pub mod ledger;
pub mod oracle;
pub mod plan;
pub mod progress;
mod queues;
pub mod random;
pub mod report;
mod rows;
pub mod run;
mod strike;
pub mod test_servers;
pub mod verdict;
mod versions;

pub use arena::Timeouts;
