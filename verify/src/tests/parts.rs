//! The platform without one of the repairing parts: an end is out of reach, an exchange goes on for ever, or the
//! failed queue keeps outdated messages.

use super::assert_breaks;
use crate::protocol::fences::Part;
use crate::protocol::scenarios::without_part;

fn needs(part: Part) {
    assert_breaks(&without_part(part));
}

#[test]
fn without_the_relay_a_claim_whose_scheduler_died_waits_for_ever() {
    needs(Part::Relay);
}

#[test]
fn without_the_reconciler_a_wiped_ticket_is_never_republished() {
    needs(Part::Reconciler);
}

#[test]
fn without_the_rescuer_an_attempt_whose_ticket_is_gone_runs_for_ever() {
    needs(Part::Rescuer);
}

#[test]
fn without_republishing_by_the_sweep_a_wiped_parked_message_stays_missing() {
    needs(Part::SweepRepublishes);
}

#[test]
fn without_removals_by_the_sweep_the_failed_queue_keeps_stale_messages() {
    needs(Part::SweepRemoves);
}

#[test]
fn without_a_retry_budget_a_failing_task_is_retried_for_ever() {
    needs(Part::Budget);
}

#[test]
fn without_a_bound_on_snoozes_a_task_that_always_snoozes_runs_for_ever() {
    needs(Part::Patience);
}
