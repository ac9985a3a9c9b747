//! One `[tasks.NAME]` table.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;

use sexton_model::duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::TaskEntry;
use super::problem::Problems;
use super::program::ProgramFinder;
use crate::command::CommandLine;

/// Longest name of a task type, in bytes.
const NAME_MAX_BYTES: usize = 100;

/// Most words of a command, the program included.
pub const COMMAND_MAX_WORDS: usize = 256;

/// Longest word of a command, in bytes.
const WORD_MAX_BYTES: usize = 32 * 1024;

const TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// Longest `timeout` of a task type.
pub const TIMEOUT_MAX: Duration = Duration::from_hours(30 * 24);
const GRACE_DEFAULT: Duration = Duration::from_secs(5);
/// Longest `grace` of a task type.
pub const GRACE_MAX: Duration = Duration::from_mins(10);

/// The executors that are no part of this version.
const LATER_EXECUTORS: [&str; 3] = ["http", "sql", "email"];

/// Reads an entry; notes every problem that it has. `None` if it has one.
pub(super) fn read(
    name: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    finder: &ProgramFinder,
    problems: &mut Problems,
) -> Option<TaskEntry> {
    let mut reader = EntryReader { task: name.get_ref(), problems, sound: true };
    if !is_type_name(name.get_ref()) {
        let said = "a task type's name is 1 to 100 of A-Z a-z 0-9 . _ -";
        reader.problem(Some(name.span()), None, said);
    }
    let Some(table) = value.get_ref().as_table() else {
        reader.problem(Some(value.span()), None, "must be a table with a `command`");
        return None;
    };
    let command = reader.command(name.span(), table, finder);
    let timeout = reader.span(table, "timeout", TIMEOUT_MIN, TIMEOUT_MAX);
    let grace = reader.span(table, "grace", Duration::ZERO, GRACE_MAX).unwrap_or(GRACE_DEFAULT);
    reader.unknown_keys(table);
    let sound = reader.sound;
    command.filter(|_| sound).map(|command| TaskEntry { command, timeout, grace })
}

fn is_type_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=NAME_MAX_BYTES).contains(&name.len()) && name.bytes().all(allowed)
}

struct EntryReader<'r> {
    task: &'r str,
    problems: &'r mut Problems,
    sound: bool,
}

impl EntryReader<'_> {
    fn problem(
        &mut self,
        span: Option<Range<usize>>,
        field: Option<&str>,
        message: impl Into<String>,
    ) {
        self.sound = false;
        self.problems.add(span, Some(self.task), field, message);
    }

    fn command(
        &mut self,
        name: Range<usize>,
        table: &DeTable<'_>,
        finder: &ProgramFinder,
    ) -> Option<CommandLine> {
        let Some(value) = table.get("command") else {
            // An executor of a later version is reported as such; then this would only distract.
            if !LATER_EXECUTORS.iter().any(|key| table.contains_key(*key)) {
                let said = "needs a `command`, such as [\"/opt/prog\", \"--flag\"]";
                self.problem(Some(name), None, said);
            }
            return None;
        };
        let field = Some("command");
        let Some(array) = value.get_ref().as_array() else {
            let said = "must be a list such as [\"/opt/prog\", \"--flag\"]; there is no shell";
            self.problem(Some(value.span()), field, said);
            return None;
        };
        if !(1..=COMMAND_MAX_WORDS).contains(&array.len()) {
            let said = format!("must have 1 to {COMMAND_MAX_WORDS} words: the program first");
            self.problem(Some(value.span()), field, said);
            return None;
        }
        let mut words = Vec::with_capacity(array.len());
        for word in array {
            match word.get_ref().as_str() {
                Some(text) if text.len() > WORD_MAX_BYTES || text.contains('\0') => {
                    let said =
                        format!("a word is longer than {WORD_MAX_BYTES} bytes or holds a NUL");
                    self.problem(Some(word.span()), field, said);
                }
                Some(text) => words.push((word.span(), text.to_owned())),
                None => self.problem(Some(word.span()), field, "every word must be a string"),
            }
        }
        // With a bad word left out, the first of the rest need not be the program.
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
            Err(said) => {
                self.problem(Some(span), field, said);
                None
            }
        }
    }

    fn span(
        &mut self,
        table: &DeTable<'_>,
        field: &str,
        min: Duration,
        max: Duration,
    ) -> Option<Duration> {
        let value = table.get(field)?;
        let Some(text) = value.get_ref().as_str() else {
            let said = "must be a duration in quotes, such as \"45m\" or \"1h30m\"";
            self.problem(Some(value.span()), Some(field), said);
            return None;
        };
        let span = match duration::parse(text) {
            Ok(span) => span,
            Err(error) => {
                self.problem(Some(value.span()), Some(field), error.to_string());
                return None;
            }
        };
        if !(min..=max).contains(&span) {
            let (min, max) = (duration::format(min), duration::format(max));
            let said = format!("must be {min} to {max}");
            self.problem(Some(value.span()), Some(field), said);
            return None;
        }
        Some(span)
    }

    fn unknown_keys(&mut self, table: &DeTable<'_>) {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if ["command", "timeout", "grace"].contains(&name) {
                continue;
            }
            let said = if LATER_EXECUTORS.contains(&name) {
                "comes with a later version; this version runs `command` only"
            } else {
                "unknown key; known are `command`, `timeout` and `grace`"
            };
            self.problem(Some(key.span()), Some(name), said);
        }
    }
}
