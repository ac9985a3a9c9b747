//! The protocol of `docs/internals/architecture.md`, checked exhaustively within bounds: see `docs/internals/proof.md`.
//!
//! Three models: [`protocol`] follows one execution with everybody who acts on it, [`overlap`] the executions of one job
//! among one another, [`hold`] catch-up after a jump of the database's time. One [`explorer`] visits every state that
//! any order of their actions leads to, with crashes and other faults at any place.
//!
//! **Not a copy.** Decisions come from `sexton_model`: the transition table, the answer to a ticket that opened
//! nothing, what follows an attempt's end, what becomes of a parked message. The models add the statements and
//! effects around them: what `shared/store`, `worker` and `scheduler` do, in their order.
//!
//! **It can fail.** A test takes down each fence of the protocol and asserts that a counterexample follows;
//! `verify/traces` shows them.
//!
//! **The checker.** `stateright` checks the same models in a test and must see the same states. The rest is not built
//! on it, because it keeps no edges, and liveness (is an end still reachable, can an exchange go on for ever) is a
//! question to the edges.
//!
//! The models do not show that the code does what they say: the tests on real servers do that.

pub mod document;
pub mod explorer;
pub mod hold;
pub mod overlap;
pub mod protocol;
#[cfg(test)]
mod tests;
