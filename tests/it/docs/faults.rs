//! The fault points: the list, the source and the documents name the same ones.

use std::collections::BTreeSet;
use std::path::PathBuf;

use sexton_service::fault::{POINTS, Point, Reruns};

use super::names::is_name;
use super::{between, code_spans, files, text};

/// The documents that name points.
const DOCUMENTS_NAMING_POINTS: [&str; 2] =
    ["docs/internals/architecture.md", "docs/internals/fault-points.md"];

/// The folder of the tests that strike the points.
const CRASH_TESTS: &str = "tests/it/process/crash_points";

/// The prefix of a program's points, and the folders in which it passes them.
const PROGRAMS: [(&str, &[&str]); 3] = [
    ("scheduler", &["scheduler/src"]),
    ("worker", &["worker/src"]),
    ("console", &["console/src", "shared/operations/src"]),
];

#[test]
fn every_fault_point_is_listed_and_stands_once_in_its_program() {
    let mut passed = Vec::new();
    for (program, folders) in PROGRAMS {
        let is_its = |file: &PathBuf| folders.iter().any(|folder| file.starts_with(folder));
        for file in files(".rs").into_iter().filter(is_its) {
            let source = text(&file);
            for call in source.split("fault::point(").skip(1) {
                // A literal where it is passed: a name from elsewhere could be any.
                let name = call.strip_prefix('"').and_then(|rest| rest.split('"').next());
                let name = name.unwrap_or_else(|| panic!("{}: write the name", file.display()));
                assert!(name.starts_with(&format!("{program}.")), "{}: {name}", file.display());
                passed.push(name.to_owned());
            }
        }
    }
    passed.sort();
    let mut listed: Vec<_> = POINTS.iter().map(|point| point.name.to_owned()).collect();
    listed.sort();
    assert_eq!(passed, listed, "left: in the source; right: in the list");
}

/// The file of the test that strikes `point`: the process dies in it at that point, and the list's
/// entry for the point checks the end.
fn crash_test_module(point: &Point) -> Option<String> {
    let begins = format!("#[tokio::test]\nasync fn {}() {{\n", point.name.replace('.', "_"));
    let sources = files(".rs").into_iter().filter(|file| file.starts_with(CRASH_TESTS));
    let mut modules = sources.filter(|file| {
        let source = text(file);
        let body = source.split_once(&begins).and_then(|(_, rest)| rest.split("\n}\n").next());
        let named = |body: &str| body.matches(&format!("\"{}\"", point.name)).count() >= 2;
        body.is_some_and(named)
    });
    let module = modules.next()?.file_stem()?.to_string_lossy().into_owned();
    modules.next().is_none().then_some(module)
}

#[test]
fn every_fault_point_has_a_crash_test_named_after_it() {
    for point in POINTS {
        assert!(crash_test_module(point).is_some(), "no test strikes {}", point.name);
    }
}

#[test]
fn the_table_of_the_fault_points_is_the_list() {
    let row = |point: &Point| {
        let Point { name, after, before, leaves, reruns, .. } = point;
        let again = match reruns {
            Reruns::Never => "",
            Reruns::Once => " (**twice**)",
        };
        format!("| `{name}` | {after} | {before} | {leaves}{again} |\n")
    };
    let head = "| point | the last effect | the next effect | what a crash between them leaves |\n\
                |---|---|---|---|\n";
    let table = head.to_owned() + &POINTS.iter().map(row).collect::<Vec<_>>().concat();
    let document = text("docs/internals/fault-points.md");
    let there = between(&document, "points").trim();
    assert_eq!(there, table.trim(), "replace the block between the markers:\n{table}");
}

#[test]
fn every_fault_point_that_a_document_names_is_listed() {
    let known: BTreeSet<_> = POINTS.iter().map(|point| point.name).collect();
    let mut named = 0;
    for document in DOCUMENTS_NAMING_POINTS {
        for span in code_spans(&text(document)) {
            let Some((program, place)) = span.split_once('.') else { continue };
            if PROGRAMS.iter().any(|(known, _)| *known == program) && is_name(place) {
                named += 1;
                assert!(known.contains(&*span), "{document}: no fault point {span}");
            }
        }
    }
    assert!(named >= 8, "only {named} fault points were found");
}
