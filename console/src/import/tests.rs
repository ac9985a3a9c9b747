//! What comes out of both readers: files that pass the checker, and schedules that stay what they were.
mod crontabs;
mod manifests;
