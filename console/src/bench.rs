//! Measuring on the servers of the platform, without touching the platform: with a database, a namespace and programs
//! of its own, which are gone afterwards.
//!
//! - [`environment`] is where: a scratch database and a namespace that have the same name.
//! - [`programs`] are a scheduler and workers, which end when this process does, however it does.
//! - [`benchmarks`] are what is measured, by the record and by the database's clock.

pub mod benchmarks;
pub mod environment;
pub mod programs;
