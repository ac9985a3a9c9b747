//! The table of commands and requests: each command of the command line, and each route that it names.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Command, CommandFactory as _};
use sexton_console::arguments::Arguments;
use sexton_server::api::description;

use super::{between, code_spans, text};

/// The commands without commands of their own, each with its name and that of the command above; empty: none.
fn leaves(command: &Command, above: &str, found: &mut Vec<(String, String)>) {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        let name = inner.get_name();
        if name == "help" {
            continue;
        }
        if inner.has_subcommands() {
            leaves(inner, format!("{above} {name}").trim_start(), found);
        } else {
            found.push((above.to_owned(), name.to_owned()));
        }
    }
}

/// The code spans of each row, by the commands of its first column.
fn rows(table: &str) -> BTreeMap<String, Vec<String>> {
    let mut rows = BTreeMap::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let (commands, requests) = row[2..].split_once(" | ").unwrap_or_else(|| panic!("{row}"));
        for command in code_spans(commands) {
            assert_eq!(rows.insert(command, code_spans(requests)), None, "{row}");
        }
    }
    rows
}

#[test]
fn each_command_has_its_request_or_a_reason_and_each_request_is_a_route() {
    let document = text("docs/reference/api.md");
    let rows = rows(between(&document, "commands"));
    let mut commands = Vec::new();
    leaves(&Arguments::command(), "", &mut commands);
    assert!(commands.len() > 80, "{commands:?}");
    for (above, name) in &commands {
        let is_listed = match above.as_str() {
            "" => rows.contains_key(name),
            above => rows.get(above).is_some_and(|spans| spans.contains(name)),
        };
        assert!(is_listed, "docs/reference/api.md has no request of `sexton {above} {name}`");
    }
    let description = serde_json::to_value(description()).unwrap();
    let mut routes = BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/api/v1").unwrap();
        let methods = item.as_object().unwrap().keys();
        routes.extend(methods.map(|method| format!("{} {path}", method.to_uppercase())));
    }
    let requests = rows.values().flatten().filter(|span| span.contains(" /"));
    let unknown: Vec<_> = requests.filter(|request| !routes.contains(*request)).collect();
    assert!(unknown.is_empty(), "no such routes: {unknown:?}");
}
