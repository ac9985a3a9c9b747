//! `H`: a number that depends on the job's name, so that jobs that need no particular minute do not
//! all begin in the same one.
//!
//! # Guarantees
//!
//! The same name and field give the same number in every release and on every machine. A test holds
//! the numbers. Each field has a number of its own, so that `H H * * *` spreads over the whole day.

use super::error::Field;
use crate::hash;

/// Returns a number below `size` (at least 1) for the job called `name`, each about equally likely.
pub(super) fn below(size: u8, name: &str, field: Field) -> u8 {
    // Below a number of eight bits.
    hash::below(u64::from(size), hash::of(name, field.label().as_bytes())) as u8
}
