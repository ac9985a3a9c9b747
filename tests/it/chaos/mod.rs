//! Operations and faults drawn by chance, and what holds after all of them.
//!
//! These take the longest of all. Tests begin in the order of their names, so no processor waits for these at the end.

mod simulation;
mod torture;
