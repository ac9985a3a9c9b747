//! The reliability page: what it records is whole, and about faults that there are.
//!
//! The page has the summaries of the long runs; tests/long-runs.md has each kind of fault and each quantity.
//! They are of the commit that the page names. A kind of fault that is newer may be missing from it until the next
//! run; one that was removed since is listed here.

use std::collections::BTreeMap;

use sexton_tests::torture::fault::Fault;

use super::{between, text};

const PAGE: &str = "docs/internals/reliability.md";
const RECORD: &str = "tests/long-runs.md";
/// Of each kind, in a whole run.
const EACH: usize = 10;

/// The cells of all rows of tables.
fn rows(section: &str) -> Vec<Vec<&str>> {
    let lines = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    lines.map(|line| line.split(" | ").map(str::trim).collect()).collect()
}

/// What the rows of two cells say.
fn facts(section: &str) -> BTreeMap<&str, &str> {
    let rows = rows(section).into_iter();
    rows.filter(|row| row.len() == 2).map(|row| (row[0], row[1])).collect()
}

fn count(text: &str) -> usize {
    text.replace(',', "").parse().unwrap_or_else(|_| panic!("{text} is no count"))
}

/// Fault points of the recorded run that do not exist any more; the next recorded run empties this list.
const REMOVED: [&str; 0] = [];

#[test]
fn the_recorded_torture_run_injected_every_fault_often_enough_without_a_violation() {
    let (page, record) = (text(PAGE), text(RECORD));
    let (section, record) = (between(&page, "torture"), between(&record, "torture"));
    let recorded = facts(section);
    for zero in ["lost executions", "attempts opened twice", "overlapping runs"] {
        assert_eq!(recorded.get(zero), Some(&"0"), "{zero}");
    }
    for field in ["day", "executions", "re-runs"] {
        assert!(recorded.contains_key(field), "{field} is not recorded");
    }
    let of_record = facts(record);
    for field in ["seed", "versions"] {
        assert!(recorded.contains_key(field), "{field} is not recorded");
        assert_eq!(
            recorded.get(field),
            of_record.get(field),
            "page and record are of one run: {field}"
        );
    }
    assert!(!recorded["versions"].contains("with changes"), "it must be of a commit");
    let struck = count(recorded["faults struck"]);
    assert!(struck >= 1_000, "{struck}");
    let kinds: Vec<Vec<&str>> =
        rows(record).into_iter().filter(|row| row.len() == 4 && row[0] != "fault").collect();
    assert_eq!(kinds.len().to_string(), recorded["kinds of faults"]);
    for removed in REMOVED {
        assert!(Fault::named(removed).is_none(), "{removed} exists: it was not removed");
        assert!(kinds.iter().any(|kind| kind[0] == removed), "{removed} is not in the record");
    }
    for kind in &kinds {
        if REMOVED.iter().any(|removed| kind[0].ends_with(removed)) {
            continue;
        }
        let fault = Fault::named(kind[0]).unwrap_or_else(|| panic!("no fault is {}", kind[0]));
        let times = count(kind[1]);
        assert!(times >= fault.least(EACH), "{fault} was struck {times} times");
    }
    assert_eq!(kinds.iter().map(|kind| count(kind[1])).sum::<usize>(), struck);
    let classes = rows(section).into_iter().filter(|row| row.len() == 5 && row[1] != "kinds");
    let summed = classes
        .fold((0, 0), |(kinds, struck), row| (kinds + count(row[1]), struck + count(row[2])));
    assert_eq!(summed, (kinds.len(), struck), "the classes are the sums of the record");
}

#[test]
fn the_recorded_soak_was_fed_and_grew_nowhere() {
    let (page, record) = (text(PAGE), text(RECORD));
    let (section, record) = (between(&page, "soak"), between(&record, "soak"));
    for part in [section, record] {
        assert!(!part.contains("**"), "the recorded soak failed");
        assert!(!part.contains("with changes"), "it must be of a commit");
    }
    let circumstances = |part: &str| part.split(" processors").next().map(str::to_owned);
    assert_eq!(circumstances(section), circumstances(record), "page and record are of one run");
    let judged = rows(record).into_iter().filter(|row| row.last() == Some(&"bounded")).count();
    for what in
        ["RSS", "descriptors", "executions: size", "main: queue", "delay: queue", "unpublished"]
    {
        assert!(record.contains(what), "{what} was not judged");
    }
    assert!(judged >= 12, "{judged} quantities were judged");
    assert!(section.contains(&format!("All {judged} quantities are bounded.")), "{judged}");
}
