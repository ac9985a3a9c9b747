//! The worker's own duties.

mod command;
mod trials;
