//! The worker's own duties.

mod command;
mod handler_testing;
