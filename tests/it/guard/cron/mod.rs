//! Cron jobs that a service runs itself, on every instance the same: each tick runs once.

mod fleet;
mod instance;
mod rows;
