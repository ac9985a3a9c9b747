//! The guarantees and their tests: two pages that name the same ones.
//!
//! A guarantee begins with its id in bold, `**F1. …`. docs/reference/guarantee-tests.md has a row
//! for each id with the tests that show it.

use super::names::{exists, is_path};
use super::{code_spans, text};

/// The least number of guarantees on the page: two empty pages would agree, too.
const MIN_PROMISES: usize = 75;

/// The section and id of each guarantee, in the order of the page.
fn promises(page: &str) -> Vec<(String, String)> {
    under_headings(page, |line| line.strip_prefix("**")?.split_once(". ").map(|(id, _)| id))
        .map(|(section, id, _)| (section, id))
        .collect()
}

/// The section, the id and the tests of each row, in the order of the page.
fn rows(page: &str) -> Vec<(String, String, Vec<String>)> {
    under_headings(page, |line| line.strip_prefix("| ")?.split_once(" | ").map(|(id, _)| id))
        .map(|(section, id, row)| (section, id, code_spans(row)))
        .collect()
}

/// The lines of a page for which `id_of` finds an id, with the heading above.
fn under_headings<'a>(
    page: &'a str,
    id_of: impl Fn(&'a str) -> Option<&'a str>,
) -> impl Iterator<Item = (String, String, &'a str)> {
    let mut section = String::new();
    page.lines().filter_map(move |line| {
        if let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut section);
        }
        let id = id_of(line).filter(|id| is_id(id))?;
        Some((section.clone(), id.to_owned(), line))
    })
}

/// A capital letter and a number.
fn is_id(text: &str) -> bool {
    text.strip_prefix(|c: char| c.is_ascii_uppercase())
        .is_some_and(|number| number.parse::<u8>().is_ok_and(|number| number > 0))
}

#[test]
fn each_promise_has_a_row_with_tests_that_exist_and_each_row_has_a_promise() {
    let promised = promises(&text("docs/reference/guarantees.md"));
    let shown = rows(&text("docs/reference/guarantee-tests.md"));
    let ids: Vec<_> = shown.iter().map(|(section, id, _)| (section.clone(), id.clone())).collect();
    assert_eq!(promised, ids, "left: docs/reference/guarantees.md; right: guarantee-tests.md");
    assert!(promised.len() >= MIN_PROMISES, "only {} promises were found", promised.len());
    for (index, (_, id)) in promised.iter().enumerate() {
        assert!(promised[..index].iter().all(|(_, other)| other != id), "two promises are {id}");
    }
    for (_, id, tests) in shown {
        assert!(!tests.is_empty(), "{id}: no test shows it");
        for test in tests {
            assert!(is_path(&test) && exists(&test), "{id}: no test is {test}");
        }
    }
}

#[test]
fn a_promise_without_tests_is_reported() {
    let promise =
        "## Firing\n\n**F1. A firing makes one execution.** Of **each** job.\n\n**Not. This.**\n";
    let f1 = ("Firing".to_owned(), "F1".to_owned());
    assert_eq!(promises(promise), [f1]);
    let table =
        "## Firing\n| promise | tests |\n|---|---|\n| F1 | `a::b::c`<br>`a::b::d` |\n| F2 | |\n";
    let rows = rows(table);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].2, ["a::b::c", "a::b::d"]);
    assert!(rows[1].2.is_empty());
}
