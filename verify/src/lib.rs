//! The protocol of `docs/internals/architecture.md`, checked exhaustively within bounds: see
//! `docs/internals/proof.md`.
//!
//! Four models: [`protocol`] follows one execution with every process that acts on it, [`overlap`] the executions of
//! one job among one another, [`mod@flow`] the members of a flow, [`hold`] catch-up after a jump of the database's time. One [`explorer`] visits every
//! state that any order of their actions leads to, with crashes and other faults at any place.
//!
//! **Not a copy.** Decisions come from `sexton_model`: the transition table, the decisions for a ticket that opened
//! nothing, for an attempt's end, and for a parked message. The models add the statements and effects around them:
//! those of `shared/store`, `worker` and `scheduler`, in their order.
//!
//! **It can fail.** A test removes each fence of the protocol and asserts that a counterexample follows;
//! `verify/traces` shows them.
//!
//! **The checker.** `stateright` checks the same models in a test and must see the same states. The explorer is not
//! built on it, because it keeps no edges, and liveness (whether an end is reachable, whether an exchange can go on
//! for ever) concerns the edges.
//!
//! The models do not show that the code matches them: the tests on real servers do that.

pub mod document;
pub mod explorer;
pub mod flow;
pub mod hold;
pub mod overlap;
pub mod protocol;
#[cfg(test)]
mod tests;
