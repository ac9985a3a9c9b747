//! The list of findings, the page about them, and the tests that create them.

use sexton_operations::doctor::code::{Code, tables};

use crate::docs::{between, files, text};

#[test]
fn the_doctor_page_lists_the_findings_of_the_code() {
    let document = text("docs/operations/doctor.md");
    let there = between(&document, "findings").trim();
    let tables = tables();
    assert_eq!(there, tables.trim(), "replace the block between the markers:\n{tables}");
}

#[test]
fn each_finding_has_a_test_that_creates_it() {
    let sources: Vec<String> = files(".rs")
        .iter()
        .filter(|file| {
            file.starts_with("tests/it/doctor") || file.starts_with("shared/operations/src/doctor")
        })
        .map(text)
        .collect();
    let missing: Vec<_> = Code::ALL
        .iter()
        .map(|code| format!("fn doctor_finds_{}() {{", code.as_str()))
        .filter(|test| !sources.iter().any(|source| source.contains(test.as_str())))
        .collect();
    assert!(missing.is_empty(), "no test creates:\n{}", missing.join("\n"));
}
