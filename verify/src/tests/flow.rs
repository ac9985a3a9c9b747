//! The members of a flow among one another.

use super::{assert_breaks, assert_sound};
use crate::flow::Flow;

#[test]
fn every_history_of_a_flow_satisfies_every_property() {
    Flow::ALL.iter().for_each(assert_sound);
}

#[test]
fn each_part_that_keeps_a_flow_whole_is_necessary() {
    Flow::mutants().iter().for_each(assert_breaks);
}
