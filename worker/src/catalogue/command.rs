//! `command = [...]`: a program and its arguments.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_model::quoting;
use toml::de::DeValue;

use super::fields::{Fields, Notes};
use super::program::ProgramFinder;
use super::{user, value};
use crate::executor::command::environment::{is_never_inherited, is_reserved};
use crate::executor::command::{
    CommandLine, CommandTask, GRACE_DEFAULT, TaskEnvironment, TaskLimits, TaskUser,
};
use crate::guard::memory_can_be_watched;
use sexton_model::secret_ref::is_variable;
use sexton_outbound::secret::Value;

/// Longest `grace` of a command.
pub const GRACE_MAX: Duration = Duration::from_mins(10);

/// Most words of a command, the program included.
pub const COMMAND_MAX_WORDS: usize = 256;

/// Longest word of a command, in bytes.
const WORD_MAX_BYTES: usize = 32 * 1024;

/// Least and most memory of a task, in bytes.
pub const MEMORY: RangeInclusive<u64> = 1 << 20..=1 << 40;

/// Least and most processor time of a process.
pub const CPU_TIME: RangeInclusive<Duration> = Duration::from_secs(1)..=super::TIMEOUT_MAX;

/// Least and most open files of a process.
pub const OPEN_FILES: RangeInclusive<i64> = 16..=1_048_576;

/// The most names to inherit, and the most variables to set.
pub const VARIABLES_MAX: usize = 200;

/// Longest value of a variable, in bytes.
const VALUE_MAX_BYTES: usize = 32 * 1024;

/// Longest text for standard input in place of the params, in bytes.
pub const STDIN_TEXT_MAX_BYTES: usize = 32 * 1024;

/// Longest path of a directory, in bytes.
const PATH_MAX_BYTES: usize = 4_000;

/// The keys that belong to `command`.
pub(super) const OPTIONS: [&str; 6] =
    ["grace", "user", "directory", "environment", "limits", "stdin"];

/// Reads a command and its options; notes every problem. `None` if the command line has one.
pub(super) fn read(
    fields: Fields<'_>,
    finder: &ProgramFinder,
    notes: &mut Notes<'_>,
) -> Option<CommandTask> {
    let line = line(fields, finder, notes);
    let grace = fields.span("grace", Duration::ZERO..=GRACE_MAX, notes).unwrap_or(GRACE_DEFAULT);
    let user = user(fields, notes);
    let directory = directory(fields, finder.folder(), notes);
    let environment = environment(fields, finder.folder(), notes);
    let limits = limits(fields, notes);
    let stdin = stdin(fields, notes);
    line.map(|line| CommandTask { line, grace, user, directory, environment, limits, stdin })
}

fn user(fields: Fields<'_>, notes: &mut Notes<'_>) -> Option<TaskUser> {
    let name = match fields.get("user")?.get_ref() {
        DeValue::Integer(number) => number.to_string(),
        _ => fields.text("user", user::NAME_MAX_BYTES, notes)?.to_owned(),
    };
    match user::find(&name) {
        Ok(user) => Some(user),
        Err(message) => {
            fields.report("user", message, notes);
            None
        }
    }
}

fn directory(fields: Fields<'_>, folder: &Path, notes: &mut Notes<'_>) -> Option<PathBuf> {
    let text = fields.text("directory", PATH_MAX_BYTES, notes)?;
    match std::path::absolute(folder.join(text)) {
        Ok(path) if path.is_dir() => return Some(path),
        Ok(_) => {
            let message = format!("{} is no directory, or cannot be seen", quoting::quoted(text));
            fields.report("directory", message, notes);
        }
        Err(error) => fields.report("directory", format!("cannot be determined: {error}"), notes),
    }
    None
}

fn environment(fields: Fields<'_>, folder: &Path, notes: &mut Notes<'_>) -> TaskEnvironment {
    let mut environment = TaskEnvironment::default();
    let Some(section) = fields.table("environment", "environment.", notes) else {
        return environment;
    };
    section.check_keys(&["inherit", "set"], notes);
    if section.has("inherit") {
        let names = section.texts("inherit", VARIABLES_MAX, notes);
        for (span, name) in &names {
            let begin = name.strip_suffix('*').unwrap_or(name);
            let message = if !(is_variable(begin) || *name == "*") {
                "is no name of a variable, nor the beginning of one with a * at its end"
            } else if name.ends_with('*') || !is_never_inherited(OsStr::new(name)) {
                continue;
            } else {
                "is a setting of the worker, which is not handed on"
            };
            let message = format!("{} {message}", quoting::quoted(name));
            notes.problem(Some(span.clone()), Some(&section.name("inherit")), message);
        }
        environment.inherit = names.into_iter().map(|(_, name)| name.to_owned()).collect();
    }
    let Some(set) = section.table("set", "environment.set.", notes) else { return environment };
    for (key, found) in set.entries().take(VARIABLES_MAX) {
        let (name, place) = (key.get_ref().as_ref(), set.name(key.get_ref()));
        if !is_variable(name) {
            notes.problem(Some(key.span()), Some(&place), "is no name of a variable");
        } else if is_reserved(OsStr::new(name)) {
            notes.problem(Some(key.span()), Some(&place), "is a name that Sexton keeps for itself");
        }
        match value::read(found, &place, folder, notes) {
            Some(Value::Plain(text)) if text.len() > VALUE_MAX_BYTES || text.contains('\0') => {
                let message = format!("is longer than {VALUE_MAX_BYTES} bytes or holds a NUL");
                notes.problem(Some(found.span()), Some(&place), message);
            }
            Some(value) => environment.set.push((name.to_owned(), value)),
            None => {}
        }
    }
    if set.entries().count() > VARIABLES_MAX {
        section.report("set", format!("has more than {VARIABLES_MAX} variables"), notes);
    }
    environment
}

/// Reads the text for standard input. It may be empty: then the program reads the end of its input at once.
fn stdin(fields: Fields<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let message = match fields.get("stdin")?.get_ref().as_str() {
        Some(text) if text.len() <= STDIN_TEXT_MAX_BYTES => return Some(text.to_owned()),
        Some(_) => format!("has {STDIN_TEXT_MAX_BYTES} bytes at most"),
        None => "must be a string".to_owned(),
    };
    fields.report("stdin", message, notes);
    None
}

fn limits(fields: Fields<'_>, notes: &mut Notes<'_>) -> TaskLimits {
    let Some(section) = fields.table("limits", "limits.", notes) else {
        return TaskLimits::default();
    };
    section.check_keys(&["memory", "cpu_time", "open_files"], notes);
    let memory = section.size("memory", MEMORY, notes);
    if memory.is_some()
        && let Err(message) = memory_can_be_watched()
    {
        section.report("memory", message, notes);
    }
    TaskLimits {
        memory,
        cpu_time: section.span("cpu_time", CPU_TIME, notes),
        open_files: section.number("open_files", OPEN_FILES, notes).map(i64::unsigned_abs),
    }
}

/// Reads the command line; notes every problem. `None` if it has one.
fn line(fields: Fields<'_>, finder: &ProgramFinder, notes: &mut Notes<'_>) -> Option<CommandLine> {
    let value = fields.get("command")?;
    let field = Some("command");
    let Some(array) = value.get_ref().as_array() else {
        let message = "must be a list such as [\"/opt/prog\", \"--flag\"]; there is no shell";
        notes.problem(Some(value.span()), field, message);
        return None;
    };
    if !(1..=COMMAND_MAX_WORDS).contains(&array.len()) {
        let message = format!("must have 1 to {COMMAND_MAX_WORDS} words: the program first");
        notes.problem(Some(value.span()), field, message);
        return None;
    }
    let mut words = Vec::with_capacity(array.len());
    for word in array {
        match word.get_ref().as_str() {
            Some(text) if text.len() > WORD_MAX_BYTES || text.contains('\0') => {
                let message =
                    format!("a word is longer than {WORD_MAX_BYTES} bytes or holds a NUL");
                notes.problem(Some(word.span()), field, message);
            }
            Some(text) => words.push((word.span(), text.to_owned())),
            None => notes.problem(Some(word.span()), field, "every word must be a string"),
        }
    }
    // If a word was invalid, the first of the valid ones need not be the program.
    if words.len() < array.len() {
        return None;
    }
    let mut words = words.into_iter();
    let (span, name) = words.next()?;
    match finder.find(&name) {
        Ok(program) => {
            let arguments = words.map(|(_, word)| word).collect();
            Some(CommandLine { program, arguments })
        }
        Err(message) => {
            notes.problem(Some(span), field, message);
            None
        }
    }
}
