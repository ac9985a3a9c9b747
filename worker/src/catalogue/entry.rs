//! Reads one `[tasks.NAME]` table.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::fields::{Fields, Notes};
use super::problem::Problems;
use super::program::ProgramFinder;
use super::{TaskEntry, TaskKind, command, email, http, retry, schema, sql};

/// Longest name of a task type, in bytes.
const NAME_MAX_BYTES: usize = 100;

const TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// Longest `timeout` of a task type.
pub const TIMEOUT_MAX: Duration = Duration::from_hours(30 * 24);

/// The keys that every type may have.
const COMMON: [&str; 3] = ["timeout", "retry", "params_schema"];

/// The keys that choose the executor; each type has exactly one of them.
const EXECUTORS: [&str; 5] = ["command", "http", "sql", "email", "noop"];

/// The problem of a type without an executor.
const NOTHING_TO_RUN: &str =
    "needs what it runs: `command = [\"/opt/prog\", \"--flag\"]`, `http`, `sql`, `email` or `noop`";

/// Reads an entry; notes every problem. `None` if it has one.
pub(super) fn read(
    name: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    finder: &ProgramFinder,
    problems: &mut Problems,
) -> Option<TaskEntry> {
    let mut notes = Notes::new(name.get_ref(), problems);
    if !is_type_name(name.get_ref()) {
        let message = "a task type's name is 1 to 100 of A-Z a-z 0-9 . _ -";
        notes.problem(Some(name.span()), None, message);
    }
    let Some(table) = value.get_ref().as_table() else {
        notes.problem(Some(value.span()), None, "must be a table with what the type runs");
        return None;
    };
    let fields = Fields::new(table, "");
    let kind = kind(name.span(), fields, finder, &mut notes);
    let timeout = fields.span("timeout", TIMEOUT_MIN..=TIMEOUT_MAX, &mut notes);
    let retry = retry::read(fields, &mut notes);
    let params_schema = schema::read(fields, finder.folder(), &mut notes);
    kind.filter(|_| notes.is_valid()).map(|kind| TaskEntry { kind, timeout, retry, params_schema })
}

fn is_type_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=NAME_MAX_BYTES).contains(&name.len()) && name.bytes().all(allowed)
}

/// Reads the type's one executor and the executor's options.
fn kind(
    name: Range<usize>,
    fields: Fields<'_>,
    finder: &ProgramFinder,
    notes: &mut Notes<'_>,
) -> Option<TaskKind> {
    let named: Vec<_> = EXECUTORS.into_iter().filter(|key| fields.has(key)).collect();
    match named[..] {
        [] => notes.problem(Some(name), None, NOTHING_TO_RUN),
        [_] => {}
        [first, second, ..] => {
            let message = format!("a task type is run by one executor: `{first}` or `{second}`");
            fields.report(second, message, notes);
        }
    }
    let chosen = if named.is_empty() { vec!["command"] } else { named };
    let section = chosen.iter().flat_map(|key| options(key));
    let known: Vec<_> = chosen.iter().chain(section).chain(&COMMON).copied().collect();
    fields.check_keys(&known, notes);
    let mut read = None;
    for key in chosen {
        read = match key {
            "command" => command::read(fields, finder, notes).map(TaskKind::Command),
            "http" => http::read(fields, finder.folder(), notes).map(TaskKind::Http),
            "sql" => sql::read(fields, notes).map(TaskKind::Sql),
            "email" => email::read(fields, finder.folder(), notes).map(TaskKind::Email),
            _ => noop(fields, notes),
        };
    }
    read
}

/// Reads `noop`, which can only be true: a false one would leave the type without an executor.
fn noop(fields: Fields<'_>, notes: &mut Notes<'_>) -> Option<TaskKind> {
    let value = fields.get("noop")?.get_ref().as_bool();
    if value != Some(true) {
        fields.report("noop", "must be `true`, or left out beside what the type runs", notes);
    }
    (value == Some(true)).then_some(TaskKind::Noop)
}

/// Returns the keys that belong to an executor.
fn options(executor: &str) -> &'static [&'static str] {
    match executor {
        "command" => &command::OPTIONS,
        "sql" => &["lock_timeout", "statement_timeout"],
        _ => &[],
    }
}
