//! The protocol as it is, in every state within the bounds.

use std::fs;

use crate::document;
use crate::explorer::{CheckedProperty, Model, check};
use crate::protocol::scenarios::{SMALL, row};

/// Checks one of the small scenarios, and that the document has its numbers.
fn holds(name: &str) {
    let protocol = SMALL.into_iter().find(|protocol| protocol.bounds.name == name).unwrap();
    let report = check(&protocol).unwrap_or_else(|found| {
        let lines = protocol.describe(&found.history).join("\n  ");
        panic!("not so: {}\n  {lines}", found.property.sentence());
    });
    let row = row(&protocol.bounds, &report);
    println!("{row}");
    let text = fs::read_to_string(document::path()).unwrap();
    let numbers = document::block(&text, "numbers").expect("a block of numbers");
    assert!(
        numbers.lines().any(|line| line == row),
        "docs/proof.md does not say {row}; run cargo run -p sexton-verify -- --write"
    );
}

#[test]
fn every_history_with_any_two_faults_satisfies_every_property() {
    holds("faults");
}

#[test]
fn every_history_of_two_schedulers_with_any_fault_satisfies_every_property() {
    holds("schedulers");
}

#[test]
fn every_history_with_any_operator_action_satisfies_every_property() {
    holds("people");
}

#[test]
fn every_history_of_a_foreign_message_with_any_fault_satisfies_every_property() {
    holds("foreign");
}

#[test]
fn every_history_of_workers_with_different_catalogues_and_any_fault_satisfies_every_property() {
    holds("catalogues");
}

#[test]
fn every_history_of_tasks_using_every_budget_with_any_fault_satisfies_every_property() {
    holds("budgets");
}

#[test]
fn every_history_of_snoozing_tasks_with_any_fault_satisfies_every_property() {
    holds("snoozes");
}

#[test]
fn every_history_of_a_stale_firing_with_any_fault_satisfies_every_property() {
    holds("stale");
}
