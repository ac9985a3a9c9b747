//! What the pure parts of an execution cost, in instructions: `make counts`.
//!
//! Time tells two versions apart only on an idle machine and after many rounds. How many instructions a pure
//! function takes is nearly the same at every run, so a change that makes one dearer is seen at once and
//! anywhere. [`cases`] says what is counted, [`callgrind`] counts it, [`baseline`] is what is committed,
//! [`verdict`] compares, and [`page`] shows it to people. The bench `cases` takes the time of the same
//! cases: `make bench-model`.

pub mod baseline;
pub mod callgrind;
pub mod cases;
pub mod circumstances;
pub mod page;
pub mod verdict;
