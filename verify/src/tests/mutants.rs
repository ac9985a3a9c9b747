//! The protocol without one of its fences: each has a violating history.

use super::assert_breaks;
use crate::explorer::{Graph, Keep, Model, check};
use crate::protocol::fences::{Fence, Fences};
use crate::protocol::properties::Property;
use crate::protocol::scenarios::{SMALL, without_fence};
use crate::protocol::{Bounds, Protocol};

fn breaks(fence: Fence) {
    assert_breaks(&without_fence(fence));
}

#[test]
fn without_the_attempt_number_an_old_ticket_opens_a_new_attempt() {
    breaks(Fence::AttemptNumber);
}

#[test]
fn without_the_state_a_redelivered_ticket_opens_a_running_attempt_again() {
    breaks(Fence::State);
}

#[test]
fn without_the_worker_s_token_another_worker_runs_the_same_attempt() {
    breaks(Fence::Worker);
}

#[test]
fn without_the_lease_a_living_attempt_is_taken_for_lost() {
    breaks(Fence::Lease);
}

#[test]
fn without_the_observation_a_clock_that_is_set_ahead_takes_living_attempts_for_lost() {
    breaks(Fence::Observation);
}

#[test]
fn without_the_due_time_a_ticket_that_comes_early_is_opened() {
    breaks(Fence::DueTime);
}

#[test]
fn without_the_unique_key_two_schedulers_claim_one_firing_twice() {
    breaks(Fence::UniqueKey);
}

#[test]
fn without_ticket_published_at_a_late_mark_marks_another_ticket() {
    breaks(Fence::TicketPublishedAt);
}

#[test]
fn without_its_own_clock_a_worker_that_is_cut_off_runs_beside_the_next() {
    breaks(Fence::OwnClock);
}

#[test]
fn without_the_renewal_first_a_late_answer_starts_a_task_whose_lease_is_over() {
    breaks(Fence::RenewalFirst);
}

#[test]
fn without_a_new_number_a_ticket_left_over_opens_what_has_failed() {
    breaks(Fence::NewNumber);
}

#[test]
fn without_a_new_revision_a_late_mark_loses_a_ticket_that_was_handed_back() {
    breaks(Fence::NewRevision);
}

/// Without the state more than one property breaks; the first hides that an ended execution begins again.
#[test]
fn without_the_state_a_succeeded_execution_starts_again() {
    let protocol = without_fence(Fence::State).model;
    let only = [Property::FinalIsFinal];
    let found = Graph::explore_for(&protocol, Keep::States, &only).expect_err("a counterexample");
    println!("{}", protocol.describe(&found.history).join("\n"));
    assert_eq!(found.property, Property::FinalIsFinal);
    let [.., (_, before), (_, after)] = &found.history.steps[..] else {
        panic!("a longer history")
    };
    assert!(before.row.state.is_final(), "{:?}", before.row.state);
    assert_ne!(after.row.state, before.row.state);
}

/// Number and state are checked as well; the fence that holds is the token, which every end of an attempt clears.
#[test]
fn a_settlement_needs_only_the_token() {
    let bounds = Bounds { faults: 1, ..SMALL[0].bounds };
    let report = |fences| check(&Protocol { bounds, fences }).expect("nothing wrong");
    assert_eq!(report(Fences::ALL.token_alone()), report(Fences::ALL));
}
