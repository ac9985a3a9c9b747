//! Jobs: applied from files, listed and shown, triggered, paused and resumed, deleted; their past firings backfilled
//! or caught up with, and their next ones computed; linted, and previewed.

pub mod activity;
pub mod apply;
pub mod backfill;
pub mod catch_up;
pub mod clock_changes;
mod copied_secrets;
pub mod definitions;
pub mod delete;
pub mod density;
pub mod details;
pub mod files;
pub mod filled;
pub mod lint;
pub mod next_firings;
pub mod pause;
pub mod policy;
pub mod preview;
pub mod revisions;
pub mod scheduled;
pub mod trigger;
pub mod trigger_jobs;
pub mod trigger_many;
