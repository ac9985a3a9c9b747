//! The complete protocol, in every state within the bounds.

use super::assert_sound;
use crate::protocol::scenarios::SMALL;

/// Checks one of the small scenarios, and that the page has its numbers.
fn holds(name: &str) {
    let protocol = SMALL.into_iter().find(|protocol| protocol.bounds.name == name).unwrap();
    assert_sound(&protocol);
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
