//! Simulation: the real statements and the real decisions, in any order, with faults in between.
//!
//! A list of operations is drawn from a seed: time passes, schedulers claim and publish, workers open,
//! renew and settle, processes die, calls are cut before or after their commit, messages are lost,
//! doubled and moved, people requeue and discard, one by one and in bulks, questions are asked and
//! answered. Each is one effect of one process. After every one of them all rows are read and judged
//! (`promises`) against what the simulation itself has seen (`ledger`); at the end faults stop, everything is run to its end, and that must be one (`ending`). A
//! list that breaks a promise is made as short as it goes (`shrink`) and printed as Rust.
//!
//! **Real** are PostgreSQL, every statement of `sexton_store` that moves an execution, and every
//! decision of `sexton_model`. **Played** is what lies between: the order of effects within a
//! scheduler, a worker or the sweep is written here once more, and so is the broker, which is a value
//! (`broker`) and does what no real one may. That the real loops and a real broker keep to this order
//! is shown by the tests of processes, and that no order of effects breaks a promise, within bounds,
//! by `verify`.
//!
//! **The clock** is moved by hand: every statement is given its instant. It begins years away from any
//! server's clock, so a statement that asked for the server's time in some place would be far off.
//!
//! **One run is like the next**: nothing is drawn but from the seed, nothing runs side by side, and a
//! transaction that is dropped is waited for. Locks between statements at the same time are therefore
//! not seen here; `tests/it/store` has tests of those.

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
