//! Entries as a jobs file, with the catalogue's entries and everything left out as comments.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sexton_model::duration;

use super::toml::{comment, commented_out, list, quoted, table};
use super::{Entry, Imported};

/// The jobs file. `made` says how it was made, for whoever finds it.
pub fn jobs_file(imported: &Imported, made: &str) -> String {
    let mut text = comment(made);
    for remark in &imported.remarks {
        text.push_str(&comment(remark));
    }
    if !imported.left_out.is_empty() {
        text.push_str("#\n# Left out:\n");
        for left in imported.told() {
            text.push_str(&comment(&format!("  {left}")));
        }
    }
    if !imported.entries.is_empty() {
        text.push_str("#\n# The catalogue of the workers (tasks.toml) needs:\n#\n");
        for line in tasks_file(imported).lines() {
            text.push_str(&commented_out(&format!("  {line}")));
        }
    }
    for entry in &imported.entries {
        text.push('\n');
        text.push_str(&job(entry));
    }
    text
}

/// The entries of the workers' catalogue, as a file of its own.
pub fn tasks_file(imported: &Imported) -> String {
    let mut text = String::new();
    let mut written = BTreeSet::new();
    for Entry { task, program, .. } in &imported.entries {
        if !written.insert(task) {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "[tasks.{}]\ncommand = {}", quoted(task), list(&program.command));
        for (field, value) in [("user", &program.user), ("directory", &program.directory)] {
            if let Some(value) = value {
                let _ = writeln!(text, "{field} = {}", quoted(value));
            }
        }
        if !program.set.is_empty() {
            let _ = writeln!(text, "environment = {{ set = {} }}", table(&program.set));
        }
    }
    text
}

/// The table of one job, with its remarks above it; all of it a comment if it is suspended.
pub(super) fn job(entry: &Entry) -> String {
    let mut text = comment(&format!("line {}", entry.line));
    for remark in &entry.remarks {
        text.push_str(&comment(remark));
    }
    let table = fields(entry);
    if !entry.suspended {
        text.push_str(&table);
        return text;
    }
    for line in table.lines() {
        text.push_str(&commented_out(line));
    }
    text
}

fn fields(entry: &Entry) -> String {
    let mut lines = vec![
        "[[job]]".to_owned(),
        format!("name = {}", quoted(&entry.name)),
        format!("schedule = {}", quoted(&entry.schedule)),
        format!("task = {}", quoted(&entry.task)),
    ];
    let mut add = |field: &str, value: String| lines.push(format!("{field} = {value}"));
    if !entry.description.is_empty() {
        add("description", quoted(&entry.description));
    }
    if !entry.zone.is_utc() {
        add("timezone", quoted(entry.zone.name()));
    }
    if let Some(overlap) = entry.overlap {
        add("overlap", quoted(overlap));
    }
    if let Some(window) = entry.misfire_window {
        let window = quoted(&duration::format(window));
        add("misfire", format!("{{ policy = \"fire_once\", window = {window} }}"));
    }
    if let Some(retries) = entry.max_retries {
        add("retry", format!("{{ max_retries = {retries} }}"));
    }
    if let Some(timeout) = entry.timeout {
        add("timeout", quoted(&duration::format(timeout)));
    }
    if !entry.labels.is_empty() {
        add("labels", table(&entry.labels));
    }
    lines.join("\n") + "\n"
}
