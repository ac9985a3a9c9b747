//! The executions of one job among one another.

use std::fs;

use sexton_model::job::Overlap;

use crate::document::{self, block};
use crate::explorer::{CheckedProperty, check};
use crate::overlap::{Fence, Job, Property, counterexamples, table};

fn written(name: &str) -> String {
    let text = fs::read_to_string(document::path()).unwrap();
    block(&text, name).expect("a block of the document").trim_end().to_owned()
}

#[test]
fn every_history_of_a_non_overlapping_job_satisfies_every_property() {
    let table = table().unwrap_or_else(|broken| panic!("{broken:#?}"));
    println!("{table}");
    assert_eq!(written("overlaps"), table, "run cargo run -p sexton-verify -- --write");
}

#[test]
fn each_fence_between_executions_is_necessary() {
    for fence in Fence::ALL {
        let broken = check(&Job::mutant(fence)).expect_err(fence.title());
        println!("without {}: not so: {}", fence.title(), broken.property.sentence());
        assert_eq!(broken.property, fence.breaks(), "{}", fence.title());
    }
    let told = counterexamples();
    println!("{told}");
    assert_eq!(written("overlap counterexamples"), told.trim_end(), "run the same with --write");
}

#[test]
fn without_admissions_a_waiting_execution_waits_for_ever() {
    for policy in [Overlap::Queue, Overlap::Replace] {
        let broken = check(&Job { admits: false, ..Job::whole(policy) });
        assert_eq!(broken.expect_err("a stuck one").property, Property::EndReachable);
    }
}

#[test]
fn the_document_lists_the_properties_between_executions() {
    let text = fs::read_to_string(document::path()).unwrap();
    for property in Property::ALL {
        let sentence = property.sentence();
        let capital = sentence[..1].to_uppercase() + &sentence[1..];
        assert!(text.contains(&capital), "no property: {capital}");
    }
}
