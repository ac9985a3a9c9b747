//! Held catch-up, in every order of planners, operators and the clock.

use super::{assert_breaks, assert_sound};
use crate::explorer::check;
use crate::hold::scenarios::{SMALL, mutants};
use crate::hold::{Bounds, HeldCatchUp, Property};

#[test]
fn every_history_of_planners_operators_and_the_clock_satisfies_every_hold_property() {
    SMALL.map(HeldCatchUp::new).iter().for_each(assert_sound);
}

/// Also the limit that no fence removes: firings that a discard leaves to the policies.
#[test]
fn each_fence_of_a_hold_is_necessary() {
    mutants().iter().for_each(assert_breaks);
}

#[test]
fn without_operators_catch_up_is_held_for_ever() {
    let model = HeldCatchUp::new(Bounds { operators: 0, ..SMALL[0] });
    assert_eq!(check(&model).expect_err("a hold").property, Property::EndReachable);
}
