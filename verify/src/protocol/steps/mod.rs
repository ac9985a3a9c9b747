//! What each process does, one effect at a time.

mod disturbances;
mod scheduler;
mod sweep;
mod worker;
