//! Failed executions: their selection, their details, and operators' actions on them.
//!
//! Requeues, discards and restores of a few run at once, each in its own transaction ([`actions`]); of many, or by a
//! filter, they are a [bulk](crate::bulks).

pub mod actions;
pub mod changes;
pub mod details;
pub mod edit;
pub mod list;
pub mod masked;
