//! Failed executions: which are selected, all that is known of one, and what an operator does about them.
//!
//! Requeues, discards and restores of a few are done at once, each in its own transaction ([`actions`]); of many, or
//! by a filter, they are a [bulk](crate::bulks).

pub mod actions;
pub mod changes;
pub mod details;
pub mod edit;
pub mod filter;
pub mod list;
pub mod selection;
