//! The reliability page: what it records is whole, and about faults that there are.
//!
//! It is of the commit that it names. A kind of fault that is newer may be missing from it until the next
//! run; one that is no longer there may not be on it.

use std::collections::BTreeMap;

use sexton_tests::torture::fault::Fault;

use super::{between, text};

const PAGE: &str = "docs/internals/reliability.md";
/// Of each kind, in a whole run.
const EACH: usize = 10;

/// The cells of all rows of tables.
fn rows(section: &str) -> Vec<Vec<&str>> {
    let lines = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    lines.map(|line| line.split(" | ").map(str::trim).collect()).collect()
}

#[test]
fn the_recorded_torture_run_injected_every_fault_often_enough_without_a_violation() {
    let page = text(PAGE);
    let section = between(&page, "torture");
    let told: BTreeMap<&str, &str> = rows(section)
        .into_iter()
        .filter(|row| row.len() == 2)
        .map(|row| (row[0], row[1]))
        .collect();
    for zero in ["lost executions", "attempts opened twice", "overlapping runs"] {
        assert_eq!(told.get(zero), Some(&"0"), "{zero}");
    }
    for field in ["seed", "versions", "executions", "re-runs"] {
        assert!(told.contains_key(field), "{field} is not told");
    }
    assert!(!told["versions"].contains("with changes"), "it must be of a commit");
    let struck: usize = told["faults struck"].replace(',', "").parse().unwrap();
    assert!(struck >= 1_000, "{struck}");
    let kinds: Vec<Vec<&str>> =
        rows(section).into_iter().filter(|row| row.len() == 4 && row[0] != "fault").collect();
    assert_eq!(kinds.len().to_string(), told["kinds of faults"]);
    for kind in kinds {
        let fault = Fault::named(kind[0]).unwrap_or_else(|| panic!("no fault is {}", kind[0]));
        let times: usize = kind[1].parse().unwrap();
        assert!(times >= fault.least(EACH), "{fault} was struck {times} times");
    }
}

#[test]
fn the_recorded_soak_was_fed_and_grew_nowhere() {
    let page = text(PAGE);
    let section = between(&page, "soak");
    assert!(!section.contains("**"), "the recorded soak failed");
    assert!(!section.contains("with changes"), "it must be of a commit");
    let judged = rows(section).into_iter().filter(|row| row.last() == Some(&"bounded")).count();
    for what in ["RSS", "descriptors", "executions: size", "main: queue", "ladder: queue", "owed"] {
        assert!(section.contains(what), "{what} was not judged");
    }
    assert!(judged >= 12, "{judged} quantities were judged");
}
