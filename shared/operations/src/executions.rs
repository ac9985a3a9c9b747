//! Executions: searched, shown with their attempts and output, and cancelled.

pub mod cancel;
pub mod details;
pub mod follow;
pub mod list;
pub mod output;
pub mod traces;
