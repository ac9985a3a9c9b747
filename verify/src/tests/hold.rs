//! Catch-up that is held, in every order of planners, operators and the clock.

use std::fs;

use crate::document::{self, block};
use crate::explorer::{CheckedProperty, check};
use crate::hold::{Bounds, Fence, HeldCatchUp, Property, SMALL, counterexample, render, table};

fn written(name: &str) -> String {
    let text = fs::read_to_string(document::path()).unwrap();
    block(&text, name).expect("a block of the document").trim_end().to_owned()
}

#[test]
fn every_history_of_planners_operators_and_the_clock_satisfies_every_hold_property() {
    let table = table(&SMALL).unwrap_or_else(|broken| panic!("{broken:?}\n{}", render(&broken)));
    println!("{table}");
    assert_eq!(written("holds"), table, "run cargo run -p sexton-verify -- --write");
}

#[test]
fn each_fence_of_a_hold_is_necessary() {
    let told = Fence::ALL.map(|fence| {
        let broken = check(&HeldCatchUp::new(Bounds::mutant(fence))).expect_err(fence.title());
        assert_eq!(broken.property, fence.breaks(), "{}", fence.title());
        counterexample(fence, &broken)
    });
    let told = told.join("\n");
    println!("{told}");
    assert_eq!(written("hold counterexamples"), told.trim_end(), "run the same with --write");
}

#[test]
fn without_operators_catch_up_is_held_for_ever() {
    let broken = check(&HeldCatchUp::new(Bounds { operators: 0, ..SMALL[0] }));
    assert_eq!(broken.expect_err("a hold").property, Property::EndReachable);
}

/// A limit, not a promise: a discard ends the hold over what is set aside, not over what is to be.
#[test]
fn a_discard_before_the_planners_leaves_them_the_firings_not_yet_held() {
    let bounds = Bounds { discards_all: true, ..SMALL[0] };
    let broken = check(&HeldCatchUp::new(bounds)).expect_err("a limit");
    assert_eq!(broken.property, Property::NothingLateUnasked);
    println!("{}", render(&broken));
    assert_eq!(written("hold limit"), render(&broken).trim_end(), "run the same with --write");
}

#[test]
fn the_document_lists_the_hold_properties() {
    let text = fs::read_to_string(document::path()).unwrap().replace('\n', " ");
    for property in Property::ALL {
        let sentence = property.sentence();
        let capital = sentence[..1].to_uppercase() + &sentence[1..];
        assert!(text.contains(&capital), "no property: {capital}");
    }
}
