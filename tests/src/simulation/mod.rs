//! Simulation: the real statements and the real decisions, in any order, with faults in between.
//!
//! A list of operations is drawn from a seed: time passes, schedulers claim and publish, workers
//! open, renew and settle, processes die, calls are cut before or after their commit, messages are
//! lost, doubled and moved, people requeue and discard, one by one and in bulks, questions run and
//! are answered. Each is one effect of one process. After every one of them all rows are read and
//! checked (`invariants`) against the simulation's own observations (`ledger`); at the end faults
//! stop, everything runs to its end, and the result is checked (`drain`). A list that violates an
//! invariant is made as short as possible (`shrink`) and printed as Rust.
//!
//! **Real** are PostgreSQL, every statement of `sexton_store` that moves an execution, and every
//! decision of `sexton_model`. **Played** is what lies between: the order of effects within a
//! scheduler, a worker or the sweep is written here a second time, and so is the broker, which is a
//! value (`broker`) and may do what no real one does. The tests of processes show that the real
//! loops and a real broker keep to this order, and `verify` shows that no order of effects violates
//! an invariant, within bounds.
//!
//! **The clock** is set by the simulation: every statement receives its instant. It begins years
//! away from any server's clock, so a statement that used the server's time somewhere would be far
//! off.
//!
//! **Runs are reproducible**: every choice follows from the seed, nothing runs side by side, and
//! the simulation waits for the end of a dropped transaction. It therefore does not test locks
//! between simultaneous statements; `tests/it/store` has tests of those.

mod broker;
mod bulks;
mod case;
mod catch_up;
mod drain;
mod environment;
mod generator;
mod invariants;
mod jobs;
mod ledger;
mod op;
mod output;
mod overlaps;
mod rows;
mod run;
mod schedulers;
mod shrink;
mod slots;
mod stop;
mod sweep;
mod writes;

pub use case::Parts;
pub use op::{BulkAction, BulkMode, BulkTarget, Cut, End, Op, Queue, ScriptedAnswer, as_rust};
pub use run::{Campaign, Counterexample, Report, SimulationRunner, Violation};
