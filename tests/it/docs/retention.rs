//! What is kept for how long: the page names every table that a migration makes.

use std::collections::BTreeSet;

use super::{code_spans, files, text};

#[test]
fn every_table_has_a_retention() {
    let mut tables = BTreeSet::new();
    for file in files(".up.sql") {
        for line in text(&file).lines() {
            let made = ["CREATE TABLE ", "CREATE UNLOGGED TABLE "];
            let rest = made.iter().find_map(|words| line.strip_prefix(words));
            let name = rest.and_then(|rest| rest.split([' ', '(']).next());
            tables.extend(name.map(|name| name.trim_start_matches("sexton.").to_owned()));
            if let Some(rest) = line.strip_prefix("DROP TABLE ") {
                tables.remove(rest.trim_start_matches("sexton.").trim_end_matches(';'));
            }
        }
    }
    assert!(tables.len() > 20, "only {} tables were found: {tables:?}", tables.len());
    let page = text("docs/reference/retention.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let named: BTreeSet<String> =
        rows.filter_map(|row| row.split('|').nth(1)).flat_map(code_spans).collect();
    assert_eq!(
        named, tables,
        "docs/reference/retention.md says of each table for how long what is in it is kept"
    );
}
