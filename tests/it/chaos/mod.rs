//! Faults: servers and networks that fail under load, and operations drawn by chance, with what holds after all of them.
//!
//! These take the longest of all. Tests begin in the order of their names, so no processor waits for these at the end.

mod servers;
mod simulation;
mod torture;
