//! The executions of one job among one another.

use super::{assert_breaks, assert_sound};
use crate::explorer::check;
use crate::overlap::{Job, Property};

#[test]
fn every_history_of_a_non_overlapping_job_satisfies_every_property() {
    Job::BOTH.iter().for_each(assert_sound);
}

#[test]
fn each_fence_between_executions_is_necessary() {
    Job::mutants().iter().for_each(assert_breaks);
}

#[test]
fn without_admissions_a_waiting_execution_waits_for_ever() {
    for job in Job::BOTH {
        let stuck = check(&Job { admits: false, ..job }).expect_err("a waiter");
        assert_eq!(stuck.property, Property::EndReachable);
    }
}
