//! The protocol of `docs/architecture.md`, checked exhaustively within bounds.
//!
//! A model of one execution with everybody who acts on it: two workers, one or two schedulers, the
//! rescuer, the reconciler, the sweep, the three kinds of queue, operators, and people with AMQP
//! tools. Every state that any order of their steps can lead to, with crashes and other faults at any
//! place, is looked at. What is modelled, what is left out and why that is sound stands in
//! `docs/proof.md`.
//!
//! **Not a copy.** Decisions are asked of `sexton_model`: the transition table, the answer to a ticket
//! that opened nothing, what follows an attempt's end, what becomes of a parked message. What is
//! modelled here are the statements and effects around them: what `shared/store`, `worker` and
//! `scheduler` do, in their order.
//!
//! **It can fail.** Each fence of the protocol can be taken down ([`fences`]), and a test asserts that
//! each then yields a counterexample.
//!
//! **The checker.** `stateright` checks the same model in a test and must see the same states. It is
//! not what the rest is built on, because it keeps no edges, and the questions that matter most here
//! (is an end still reachable, can an exchange go on for ever) are about edges; see [`explorer`].
//!
//! It does not show that the code does what the model says: the tests on real servers do that.

pub mod action;
mod canonical;
pub mod document;
pub mod explorer;
pub mod fences;
pub mod hold;
pub mod overlap;
pub mod parts;
pub mod properties;
pub mod protocol;
mod queues;
pub mod scenarios;
mod statements;
mod steps;
#[cfg(test)]
mod tests;
mod trace;
pub mod world;
