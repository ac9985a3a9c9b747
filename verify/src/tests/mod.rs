//! The checks of the test build.

mod flow;
mod hold;
mod mutants;
mod overlap;
mod parts;
mod reports;
mod requeue_stands;
mod second_opinion;
mod sound;

use std::fs;

use crate::document::{self, block, numbered, row, trace};
use crate::explorer::{CheckedProperty, Model, Mutant, check};

const WRITE: &str = "run cargo run -p sexton-verify -- --write";

/// Asserts that every property holds in every state within the bounds, and that the page has the numbers.
fn assert_sound<M: Model>(model: &M) {
    let report = check(model).unwrap_or_else(|found| {
        let trace = numbered(&model.describe(&found.history));
        panic!("not so: {}\n{trace}", found.property.sentence());
    });
    let row = row(model, &report);
    println!("{row}");
    let page = fs::read_to_string(document::path()).unwrap();
    let numbers = block(&page, "numbers").expect("a block of numbers");
    assert!(numbers.contains(&row), "verify/numbers.md does not say {row}; {WRITE}");
}

/// Asserts that the mutant breaks what it must, by the history that the page of traces shows.
fn assert_breaks<M: Model>(mutant: &Mutant<M>) {
    let found = check(&mutant.model).expect_err(&mutant.heading);
    let trace = trace(mutant, &found);
    println!("{trace}");
    assert_eq!(found.property, mutant.breaks);
    let path = document::traces_path::<M>();
    let page = fs::read_to_string(&path).unwrap();
    assert!(page.contains(&trace), "{} has another history; {WRITE}", path.display());
}
