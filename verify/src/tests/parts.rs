//! The platform without one of the parts that heal: an end is out of reach, an exchange goes on for
//! ever, or the failed queue keeps what is not true.

use crate::explorer::{CheckedProperty, Model, check};
use crate::protocol::fences::Fences;
use crate::protocol::parts::Part;
use crate::protocol::properties::Property;
use crate::protocol::scenarios::SMALL;
use crate::protocol::{Bounds, Protocol};

fn needs(part: Part, expected: Property) {
    needs_within(Bounds { faults: 1, ..SMALL[0].bounds }, part, expected);
}

fn needs_within(bounds: Bounds, part: Part, expected: Property) {
    let protocol = Protocol { bounds, fences: Fences::ALL.missing(part) };
    let found = check(&protocol).expect_err("a counterexample");
    let lines = protocol.describe(&found.history).join("\n  ");
    println!("without {part:?}: not so: {}\n  {lines}", found.property.sentence());
    assert_eq!(found.property, expected);
}

#[test]
fn without_the_relay_a_claim_whose_scheduler_died_waits_for_ever() {
    needs(Part::Relay, Property::EndReachable);
}

#[test]
fn without_the_reconciler_a_wiped_ticket_is_never_republished() {
    needs(Part::Reconciler, Property::EndReachable);
}

#[test]
fn without_the_rescuer_an_attempt_whose_ticket_is_gone_runs_for_ever() {
    needs(Part::Rescuer, Property::EndReachable);
}

#[test]
fn without_republishing_by_the_sweep_a_wiped_parked_message_stays_missing() {
    needs(Part::SweepOwes, Property::EndReachable);
}

#[test]
fn without_removals_by_the_sweep_the_failed_queue_keeps_stale_messages() {
    needs(Part::SweepRemoves, Property::FailedQueueAgrees);
}

#[test]
fn without_a_retry_budget_a_failing_task_is_retried_for_ever() {
    needs(Part::Budget, Property::NoEndlessExchange);
}

#[test]
fn without_a_bound_on_snoozes_a_task_that_always_snoozes_runs_for_ever() {
    let bounds = Bounds { snoozes: true, faults: 0, ..SMALL[0].bounds };
    needs_within(bounds, Part::Patience, Property::NoEndlessExchange);
}
