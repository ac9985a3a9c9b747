//! The steps of each process, one effect at a time.

mod disturbances;
mod scheduler;
mod sweep;
mod worker;
