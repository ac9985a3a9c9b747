//! The pages: every property, mutant and check is on them, and nothing else.

use std::fs;

use super::WRITE;
use crate::document::{self, block, traces_head};
use crate::explorer::{CheckedProperty, Model, Mutant};
use crate::flow::Flow;
use crate::hold::{self, HeldCatchUp};
use crate::overlap::Job;
use crate::protocol::scenarios::{LARGE, SMALL, mutants};

fn page() -> String {
    fs::read_to_string(document::path()).unwrap()
}

/// A test for each mutant compares its section, so only the heads and the number of sections are left.
fn assert_traces_are_of<M: Model>(mutants: &[Mutant<M>]) {
    let path = document::traces_path::<M>();
    let traces = fs::read_to_string(&path).unwrap();
    assert!(traces.starts_with(&traces_head(mutants)), "{}: {WRITE}", path.display());
    assert_eq!(traces.matches("\n## ").count(), mutants.len(), "{}: {WRITE}", path.display());
}

#[test]
fn the_traces_are_those_of_the_mutants() {
    assert_traces_are_of(&mutants());
    assert_traces_are_of(&Job::mutants());
    assert_traces_are_of(&Flow::mutants());
    assert_traces_are_of(&hold::scenarios::mutants());
}

fn assert_lists_properties<M: Model>(page: &str) {
    for property in M::Property::ALL {
        let sentence = property.sentence();
        let capital = sentence[..1].to_uppercase() + &sentence[1..];
        assert!(page.contains(&capital), "docs/internals/proof.md lists no property: {capital}");
    }
}

#[test]
fn the_page_lists_every_property() {
    let page = fs::read_to_string(document::properties_path()).unwrap();
    let page = page.replace('\n', " ").replace("  ", " ");
    assert_lists_properties::<crate::protocol::Protocol>(&page);
    assert_lists_properties::<Job>(&page);
    assert_lists_properties::<Flow>(&page);
    assert_lists_properties::<HeldCatchUp>(&page);
}

fn assert_has_rows<M: Model>(table: &str, models: &[M]) {
    for model in models {
        let row = format!("| {} | {} | {} |", M::NAME, model.check_name(), model.bounds_text());
        assert!(table.contains(&row), "verify/numbers.md has no row: {row}");
    }
}

#[test]
fn the_page_has_a_row_for_every_check() {
    let page = page();
    let numbers = block(&page, "numbers").expect("a table of numbers");
    assert_has_rows(numbers, &SMALL);
    assert_has_rows(numbers, &Job::BOTH);
    assert_has_rows(numbers, &Flow::ALL);
    assert_has_rows(numbers, &hold::scenarios::SMALL.map(HeldCatchUp::new));
    let others = Job::BOTH.len() + Flow::ALL.len() + hold::scenarios::SMALL.len();
    assert_eq!(numbers.lines().count(), 2 + SMALL.len() + others);
    let numbers = block(&page, "large numbers").expect("a table of large numbers");
    assert_has_rows(numbers, &LARGE);
    assert_has_rows(numbers, &hold::scenarios::LARGE.map(HeldCatchUp::new));
    assert_eq!(numbers.lines().count(), 2 + LARGE.len() + hold::scenarios::LARGE.len());
}
