//! What is told to people.

use std::fs;

use crate::document::{self, block, counterexamples};
use crate::explorer::CheckedProperty;
use crate::protocol::fences::Fence;
use crate::protocol::properties::Property;
use crate::protocol::scenarios::{LARGE, SMALL};

#[test]
fn the_counterexamples_of_the_document_are_those_that_are_found() {
    let text = fs::read_to_string(document::path()).unwrap();
    let written = block(&text, "counterexamples").expect("a block of counterexamples");
    assert_eq!(
        written.trim_end(),
        counterexamples().trim_end(),
        "run cargo run -p sexton-verify -- --write"
    );
}

#[test]
fn the_document_names_every_property_fence_and_check() {
    let text = fs::read_to_string(document::path()).unwrap();
    for property in Property::ALL {
        let sentence = property.sentence();
        let capital = sentence[..1].to_uppercase() + &sentence[1..];
        assert!(text.contains(&capital), "no property: {capital}");
    }
    for fence in Fence::ALL {
        assert!(text.contains(&format!("### Without {}\n", fence.title())));
    }
    for (name, scenarios) in [("numbers", &SMALL[..]), ("large numbers", &LARGE[..])] {
        let table = block(&text, name).expect("a table of numbers");
        for protocol in scenarios {
            let row = format!("| {} | {} |", protocol.bounds.name, protocol.bounds.about);
            assert!(table.contains(&row), "no row: {row}");
        }
    }
}
