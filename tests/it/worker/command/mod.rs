//! Goal: a command's outcome is that of its exit code, whatever it does to its pipes; and none of
//! its processes runs on once its worker has lost the right to run it.
//!
//! Method: real processes under the real guard. Each task opens a FIFO at its descriptor 3 that
//! every process it starts inherits; the test reads the FIFO, and its end is the event "no process
//! of the task lives". No mocks, no sleeping in the test.

mod environment;
mod fixture;
mod guard_pool;
mod limits;
mod result_file;
mod results;
mod stopping;
mod worker_death;
