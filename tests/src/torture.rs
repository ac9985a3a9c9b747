//! Torture: faults under load, thousands of them, on the real programs and the real servers.

mod arena;
pub mod bulk_fences;
mod close;
pub mod command;
pub mod draw;
mod effects;
pub mod fault;
pub mod fence_off;
pub mod fences;
mod hand;
mod jobs;
pub mod ledger;
pub mod oracle;
pub mod plan;
pub mod progress;
mod queues;
pub mod report;
mod rows;
pub mod run;
pub mod site;
mod strike;
pub mod verdict;
mod versions;

pub use arena::Patience;
