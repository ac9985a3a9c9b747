//! Entries as a jobs file, and as the workers' catalogue that it needs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sexton_model::duration;

use super::policies::Field;
use super::toml::{comment, commented_out, key, list, paragraph, quoted, table};
use super::{Entry, ImportOutcome, Program};

/// The longest catalogue that a worker reads, in bytes.
pub const MAX_TASKS_BYTES: usize = 1024 * 1024;
/// With more jobs, each table leaves out the advice about its fields.
const MAX_ADVISED_JOBS: usize = 1_000;
/// Longer lines have their comment behind a shorter space.
const COMMENT_COLUMN: usize = 40;
/// With more variables each has a line.
const MAX_INLINE_VARIABLES: usize = 3;
/// What a catalogue does not let itself be set, since a worker has settings of these names.
const RESERVED_VARIABLES: [&str; 3] = ["DATABASE_URL", "DATABASE_DIRECT_URL", "AMQP_URL"];
const RESERVED_PREFIXES: [&str; 3] = ["SEXTON_", "WORKER_", "CRON_"];

/// The jobs file. `header` says how it was made; `tasks` where the catalogue is, if that is not to stand
/// in it as comments.
pub fn jobs_file(outcome: &ImportOutcome, header: &str, tasks: Option<&str>) -> String {
    let mut text = comment(header);
    for remark in &outcome.remarks {
        text.push_str("#\n");
        text.push_str(&paragraph(remark));
    }
    if !outcome.left_out.is_empty() {
        text.push_str("#\n# Left out:\n");
        for left in outcome.describe_left_out() {
            text.push_str(&comment(&format!("  {left}")));
        }
    }
    if let Some(tasks) = tasks {
        let place =
            format!("What the jobs run is in {tasks}, which WORKER_TASKS of the workers names.");
        text.push_str("#\n");
        text.push_str(&paragraph(&place));
    } else if !outcome.entries.is_empty() {
        text.push_str("#\n");
        text.push_str(&paragraph(
            "What the jobs run, for the workers' catalogue (with --tasks FILE it is written there):",
        ));
        text.push_str("#\n");
        for line in catalogue(outcome).lines() {
            text.push_str(&commented_out(&format!("  {line}")));
        }
    }
    let advised = outcome.entries.len() <= MAX_ADVISED_JOBS;
    for entry in &outcome.entries {
        text.push('\n');
        if outcome.files.len() > 1 {
            text.push_str(&comment(&format!("{}, line {}", entry.file, entry.line)));
        } else {
            text.push_str(&comment(&format!("line {}", entry.line)));
        }
        text.push_str(&job(entry, advised));
    }
    text
}

/// The workers' catalogue, as a file of its own.
pub fn tasks_file(outcome: &ImportOutcome, header: &str) -> String {
    let how = "WORKER_TASKS of the workers names this file. What a task needs of a host (its programs, \
               users and folders) must be there when a worker starts.";
    format!("{}{}\n{}", comment(header), paragraph(how), catalogue(outcome))
}

fn catalogue(outcome: &ImportOutcome) -> String {
    let mut text = String::new();
    let mut written = BTreeSet::new();
    for Entry { task, program, .. } in &outcome.entries {
        if written.insert(task) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&task_table(task, program));
        }
    }
    text
}

fn task_table(task: &str, program: &Program) -> String {
    let (reserved, set): (Vec<_>, Vec<_>) =
        program.set.iter().partition(|(name, _)| is_reserved_variable(name));
    let mut command = program.command.clone();
    if !reserved.is_empty() {
        let assigned = reserved.iter().map(|(name, value)| format!("{name}={value}"));
        let env = std::iter::once("/usr/bin/env".to_owned());
        command = env.chain(assigned).chain(command).collect();
    }
    let name = key(task);
    // Writing to a String cannot fail.
    let mut text = format!("[tasks.{name}]\ncommand = {}\n", list(&command));
    let fields =
        [("user", &program.user), ("directory", &program.directory), ("stdin", &program.stdin)];
    for (field, value) in fields {
        if let Some(value) = value {
            let _ = writeln!(text, "{field} = {}", quoted(value));
        }
    }
    if set.len() > MAX_INLINE_VARIABLES {
        let _ = writeln!(text, "[tasks.{name}.environment.set]");
        for (variable, value) in set {
            let _ = writeln!(text, "{} = {}", key(variable), quoted(value));
        }
    } else if !set.is_empty() {
        let _ = writeln!(text, "environment = {{ set = {} }}", table(set));
    }
    text
}

/// A setting of the worker itself.
fn is_reserved_variable(name: &str) -> bool {
    RESERVED_VARIABLES.contains(&name)
        || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The table of one job, with its remarks above it and, if `advised`, the advice about its fields.
pub(super) fn job(entry: &Entry, advised: bool) -> String {
    let mut text: String = entry.remarks.iter().map(|remark| paragraph(remark)).collect();
    text.push_str("[[job]]\n");
    let mut add = |field: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{field} = {value}");
    };
    add("name", quoted(&entry.name));
    if !entry.description.is_empty() {
        add("description", quoted(&entry.description));
    }
    add("schedule", quoted(&entry.schedule));
    if !entry.zone.is_utc() {
        add("timezone", quoted(entry.zone.name()));
    }
    if let Some(days) = entry.days {
        add("days", quoted(days.as_str()));
    }
    add("task", quoted(&entry.task));
    if !entry.labels.is_empty() {
        add("labels", table(&entry.labels));
    }
    let jitter = entry.jitter.as_ref().map(|(jitter, comment)| Field {
        name: "jitter",
        value: quoted(&duration::format(*jitter)),
        comment: comment.clone(),
    });
    let paused = entry.paused.then(|| Field {
        name: "paused",
        value: "true".to_owned(),
        comment: "it is suspended there; `sexton jobs resume` starts it".to_owned(),
    });
    let fields: Vec<&Field> = paused.iter().chain(&jitter).chain(&entry.policies).collect();
    let width = |field: &&Field| field.name.len() + 3 + field.value.len();
    let column = fields.iter().map(width).filter(|width| *width < COMMENT_COLUMN).max();
    for field in &fields {
        let line = format!("{} = {}", field.name, field.value);
        let is_always_written = ["jitter", "paused"].contains(&field.name);
        if field.comment.is_empty() || !(advised || is_always_written) {
            text.push_str(&line);
            text.push('\n');
        } else {
            let column = column.unwrap_or_default();
            let _ = write!(text, "{line:<column$}  {}", comment(&field.comment));
        }
    }
    text
}
