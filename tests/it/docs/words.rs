//! Words that were replaced by the field's own, so that they do not come back.
//!
//! The code once had names that only its authors understood. What a name is called now stands beside it. A word is
//! forbidden as the name of an item, a module or a file; in the pages, only the phrases below are.

use std::path::Path;

use super::{files, text};

/// Names of items, modules and files, and what to write instead.
const NAMES: [(&str, &str); 28] = [
    ("alarm", "next_wakeup"),
    ("amends", "operator_actions"),
    ("appetite", "batch_size"),
    ("asked", "the noun: request, arguments, filter"),
    ("beaten", "conflict"),
    ("browse", "list and show"),
    ("debt", "unpublished tickets"),
    ("debts", "unpublished tickets"),
    ("deed", "action"),
    ("deeds", "actions"),
    ("few", "the thing that there are few of"),
    ("graveyard", "failures, failed executions"),
    ("hop", "next_queue"),
    ("imposed", "cancellation"),
    ("keeper", "lease_renewer"),
    ("ladder", "delay_queues"),
    ("lent", "the guard of a connection"),
    ("meant", "selection"),
    ("misfit", "schema mismatch"),
    ("misfits", "params_validation"),
    ("owe", "mark_unpublished"),
    ("owed", "unpublished"),
    ("pulse", "heartbeat"),
    ("registrar", "failure_aggregator"),
    ("seat", "instance_lock"),
    ("spares", "guard_pool"),
    ("told", "a verb with its object: describe_group, render_list"),
    ("wakes", "notifications"),
];

/// What no page of today says any more.
const PHRASES: [&str; 4] = ["so-many-th", "are not to be had", "putting right", "whoever looks"];

/// The history keeps its words; the file with the words names them.
const EXEMPT: [&str; 4] = ["CHANGELOG.md", "docs/adr", "migrations", "tests/it/docs/words.rs"];

fn is_judged(path: &Path) -> bool {
    !EXEMPT.iter().any(|exempt| path.starts_with(exempt))
}

/// The name of the item that a line of Rust begins, if it begins one.
fn item_name(line: &str) -> Option<&str> {
    const ITEMS: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "mod", "const", "static"];
    const MODIFIERS: [&str; 4] = ["pub", "const", "async", "unsafe"];
    let line = match line.split_once(')') {
        Some((visibility, item)) if visibility.trim_start().starts_with("pub(") => item,
        _ => line,
    };
    let mut words = line
        .split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty());
    let mut is_item = false;
    let name = words.find(|word| {
        is_item |= ITEMS.contains(word);
        !ITEMS.contains(word) && !MODIFIERS.contains(word)
    });
    name.filter(|_| is_item)
}

#[test]
fn no_item_or_file_has_a_name_that_was_replaced() {
    assert_eq!(item_name("    pub(in crate::x) const fn told(&self)"), Some("told"));
    assert_eq!(item_name("const MAX_JOBS: usize = 1;"), Some("MAX_JOBS"));
    assert_eq!(item_name("let told = 1;"), None);
    let mut found = Vec::new();
    let mut names = 0;
    for path in files(".rs").into_iter().filter(|path| is_judged(path)) {
        let source = text(&path);
        let file = path.file_stem().and_then(|stem| stem.to_str());
        for name in source.lines().filter_map(item_name).chain(file) {
            names += 1;
            let name = name.to_lowercase();
            if let Some((word, instead)) = NAMES.iter().find(|(word, _)| *word == name) {
                found.push(format!("{}: {word}; write {instead}", path.display()));
            }
        }
    }
    assert!(names > 10_000, "only {names} names were found");
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn no_page_has_a_phrase_that_was_replaced() {
    let mut found = Vec::new();
    for path in files(".md").into_iter().filter(|path| is_judged(path)) {
        for (number, line) in text(&path).lines().enumerate() {
            let line = line.to_lowercase();
            for phrase in PHRASES.iter().filter(|phrase| line.contains(**phrase)) {
                found.push(format!("{}:{}: {phrase}", path.display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
