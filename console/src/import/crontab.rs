//! Reads crontabs, of users or of the system, as Vixie cron and its descendants do.
//!
//! A variable holds for the entries below it. What a variable or an entry means that a job cannot say
//! is left out with its line; a line that cannot be read takes nothing from the others.

mod command;
mod file_path;
mod sleep;
mod variables;

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::cron::{Dialect, Expression};
use sexton_model::duration::format;
use sexton_model::jobs_file::limits::{JITTER, MAX_DESCRIPTION_BYTES};
use sexton_model::ticket::truncate;
use sexton_model::zone::Zone;

use super::names::{NameHints, Names};
use super::{
    Entry, ImportError, ImportOutcome, LeftOut, MAX_ENTRIES, MAX_FILE_BYTES, MAX_FILES_BYTES, days,
    finish, policies, program,
};
use variables::Variables;

pub use file_path::has_users;

/// What the text alone does not say.
#[derive(Clone, Debug)]
pub struct Options {
    /// There is a column for the user, as in `/etc/crontab`; in files of a folder `cron.d` there always is.
    pub system: bool,
    /// The zone of entries above any `CRON_TZ`: that of the host.
    pub zone: Zone,
    /// The first part of the jobs' names.
    pub service: Option<String>,
}

/// Of a comment above an entry so many lines, of so many characters each, become its description.
const MAX_COMMENT_LINES: usize = 20;
const MAX_COMMENT_CHARS: usize = 500;

/// What is true of every import.
const REMARKS: [&str; 3] = [
    "Each job means what cron means: a run may take as long as it likes and begin beside an earlier one; \
     what fails is not repeated, what was missed is not made up for. The comments beside the fields say \
     what is mostly better.",
    "What stays different: a worker that is stopped in the middle of a run begins it again elsewhere, and \
     it kills what a command leaves running in the background.",
    "Commands run in the directory of the worker, unless the crontab sets HOME; in cron, in the home of \
     their user.",
];
const USER_REMARK: &str = "The user of an entry needs a worker that runs as root, on a host that has that \
     user. A task has the user's own group and no further ones.";

/// Reads crontabs one after the other; names are unique among all of them.
pub struct Import<'o> {
    options: &'o Options,
    names: Names,
    outcome: ImportOutcome,
    bytes: usize,
}

impl<'o> Import<'o> {
    /// Nothing is read yet.
    pub fn new(options: &'o Options) -> Self {
        Self { options, names: Names::default(), outcome: ImportOutcome::default(), bytes: 0 }
    }

    /// Reads the text of `file`, a path or `-`; the entries are sound but not checked as jobs yet.
    ///
    /// # Errors
    ///
    /// [`ImportError`] for texts that are too long.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), ImportError> {
        self.bytes += text.len();
        if text.len() > MAX_FILE_BYTES {
            return Err(ImportError::TooLong(text.len()));
        }
        if self.bytes > MAX_FILES_BYTES {
            return Err(ImportError::TooLongTogether);
        }
        self.outcome.files.push(file.to_owned());
        let system = self.options.system || has_users(file);
        let mut reader = Reader {
            file,
            stem: system.then(|| file_path::stem(file)).flatten(),
            system,
            variables: Variables::new(self.options.zone),
            above: Vec::new(),
            import: self,
        };
        for (index, line) in text.lines().enumerate() {
            reader.line(index + 1, line);
            if reader.import.outcome.entries.len() > MAX_ENTRIES {
                return Err(ImportError::TooMany);
            }
        }
        Ok(())
    }

    /// What was read, with entries that may not pass the checker.
    pub fn unchecked(self) -> ImportOutcome {
        self.outcome
    }

    /// What was read; each job is checked as it would be applied at `now`.
    pub fn finish(self, now: DateTime<Utc>) -> ImportOutcome {
        let (options, mut outcome) = (self.options, self.outcome);
        outcome.remarks.extend(REMARKS.map(str::to_owned));
        if outcome.entries.iter().any(|entry| entry.program.user.is_some()) {
            outcome.remarks.push(USER_REMARK.to_owned());
        }
        let zone = options.zone;
        outcome.remarks.push(format!(
            "Entries above any CRON_TZ are in {zone}: say --tz for the zone of the crontab's host."
        ));
        finish(outcome, now)
    }
}

/// Reads the text of one crontab, and checks each job as it would be applied at `now`.
///
/// # Errors
///
/// [`ImportError`] for a text that is too long.
pub fn import(
    text: &str,
    options: &Options,
    now: DateTime<Utc>,
) -> Result<ImportOutcome, ImportError> {
    let mut import = Import::new(options);
    import.add("-", text)?;
    Ok(import.finish(now))
}

struct Reader<'i, 'o> {
    file: &'i str,
    /// What the file says of its entries by its name.
    stem: Option<&'i str>,
    system: bool,
    variables: Variables,
    /// The lines of the comment directly above.
    above: Vec<String>,
    import: &'i mut Import<'o>,
}

impl Reader<'_, '_> {
    fn line(&mut self, number: usize, line: &str) {
        let line = line.trim_matches([' ', '\t', '\r']);
        if line.is_empty() {
            self.above.clear();
        } else if let Some(comment) = line.strip_prefix('#') {
            self.comment(comment.trim_start_matches('#').trim());
        } else if let Some((name, value)) = variables::assignment(line) {
            self.above.clear();
            if let Err((entry, why)) = self.variables.set(&name, &value) {
                self.leave_out(number, entry, line, why);
            }
        } else {
            let description = std::mem::take(&mut self.above).join(" ");
            match self.entry(number, line, &description) {
                Ok(entry) => self.import.outcome.entries.push(entry),
                Err(why) => self.leave_out(number, true, line, why),
            }
        }
    }

    fn leave_out(&mut self, line: usize, entry: bool, what: &str, why: String) {
        self.import.outcome.leave_out(LeftOut::new((self.file, line), entry, what, why));
    }

    /// Remembers a comment unless it is an entry that somebody took out, or the list of the columns.
    fn comment(&mut self, text: &str) {
        let switched_off = split(text, self.system)
            .is_ok_and(|parts| Expression::parse(parts.schedule, Dialect::Unix5, "").is_ok());
        let columns = text.split_whitespace().take(2).eq(["m", "h"]);
        if switched_off || columns || text.is_empty() {
            self.above.clear();
        } else if self.above.len() < MAX_COMMENT_LINES {
            self.above.push(crate::show::line(text, MAX_COMMENT_CHARS));
        }
    }

    fn entry(&mut self, line: usize, text: &str, description: &str) -> Result<Entry, String> {
        let parts = split(text, self.system)?;
        let zone = self.variables.zone()?;
        let schedule = spread(parts.schedule);
        let read = Expression::parse(&schedule, Dialect::Unix5, "");
        read.map_err(|error| error.to_string())?;
        let (command, input) = command::split_input(parts.command);
        let mut remarks = command::differences(&command, &self.variables);
        let (command, delays) = self.without_sleep(command, &mut remarks);
        let program = command::program(&command, input, &self.variables)?;
        let program = super::Program { user: parts.user.map(str::to_owned), ..program };
        if parts.schedule.contains('~') {
            remarks.push(format!("{} was a random number of cron's own.", parts.schedule));
        }
        let runs = program::run_program(&command);
        let user = parts.user.unwrap_or_default();
        let service = self.import.options.service.as_deref();
        let before = [service, self.stem.or_else(|| service.is_none().then_some("cron"))];
        let name = self.import.names.unique(NameHints {
            before,
            word: &runs.word,
            marks: &[&runs.arguments, parts.schedule, user],
        });
        let days = days::cron_days(&schedule);
        let period = policies::period(&schedule, days, zone, &name);
        Ok(Entry {
            file: self.file.to_owned(),
            line,
            task: name.clone(),
            name,
            description: truncate(description, MAX_DESCRIPTION_BYTES).to_owned(),
            schedule,
            zone,
            days,
            jitter: jitter(&delays, period),
            policies: policies::cron_policies(period),
            labels: std::collections::BTreeMap::new(),
            program,
            remarks,
            paused: false,
        })
    }

    /// The command without a sleep that `jitter` stands for, and what delays its beginning at random.
    fn without_sleep(
        &self,
        command: String,
        remarks: &mut Vec<String>,
    ) -> (String, Vec<(Duration, String)>) {
        let random_delay =
            self.variables.random_delay().map(|delay| (delay, "RANDOM_DELAY".to_owned()));
        let mut delays: Vec<(Duration, String)> = random_delay.into_iter().collect();
        let Some(found) = sleep::find(&command) else { return (command, delays) };
        let written = crate::show::line(&found.written, MAX_COMMENT_CHARS);
        let Some(rest) = found.rest else {
            remarks.push(format!(
                "{written} keeps a slot of the worker busy while it sleeps: jitter = \"…\" does the same, \
                 if the command means the same without it."
            ));
            return (command, delays);
        };
        let plain = ["/sh", "/dash", "/ash"];
        if found.by_shell && plain.iter().any(|shell| self.variables.shell().ends_with(shell)) {
            remarks.push(format!(
                "{written}: RANDOM is bash's; where {} is another shell, it did not sleep, or failed.",
                self.variables.shell()
            ));
        }
        delays.push((found.most, written));
        (rest, delays)
    }
}

/// The jitter that stands for these delays, and what it says of them.
fn jitter(delays: &[(Duration, String)], period: Option<Duration>) -> Option<(Duration, String)> {
    let sum: Duration = delays.iter().map(|(most, _)| *most).sum();
    let jitter = sum.min(*JITTER.end());
    let by: Vec<&str> = delays.iter().map(|(_, by)| by.as_str()).collect();
    let mut comment = format!("in place of {}", by.join(" and "));
    if let Some(period) = period.filter(|period| *period < jitter) {
        let period = format(period);
        comment = format!(
            "{comment}; here each firing begins before the next one is due, {period} later"
        );
    }
    (!delays.is_empty() && jitter >= *JITTER.start()).then_some((jitter, comment))
}

/// An entry's columns.
struct Parts<'t> {
    schedule: &'t str,
    user: Option<&'t str>,
    command: &'t str,
}

fn split(text: &str, system: bool) -> Result<Parts<'_>, String> {
    let columns = if text.starts_with('@') { 1 } else { 5 };
    let mut rest = text;
    for _ in 0..columns {
        (_, rest) = word(rest)
            .ok_or("an entry has five fields, or @daily and its like, and then a command")?;
    }
    let schedule = text[..text.len() - rest.len()].trim_end();
    let user = if system {
        let (user, after) = word(rest).ok_or("the user is missing in front of the command")?;
        rest = after;
        Some(user)
    } else {
        None
    };
    match rest.trim() {
        "" if system => {
            Err("there is nothing to run behind the user; without --system there is no such column"
                .to_owned())
        }
        "" => Err("there is nothing to run behind the schedule".to_owned()),
        command => Ok(Parts { schedule, user, command }),
    }
}

/// The next word, and what follows it and the blanks behind it.
fn word(text: &str) -> Option<(&str, &str)> {
    let blank = [' ', '\t'];
    let end = text.find(blank).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (!word.is_empty()).then(|| (word, rest.trim_start_matches(blank)))
}

/// The fields with a blank between them. `a~b` is a random number in some crons, drawn at each start:
/// `H(a-b)` is one for good.
fn spread(schedule: &str) -> String {
    let item = |item: &str| match item.split_once('~') {
        Some(("", "")) => "H".to_owned(),
        Some((from, to)) if !from.is_empty() && !to.is_empty() => format!("H({from}-{to})"),
        _ => item.to_owned(),
    };
    let field = |field: &str| field.split(',').map(item).collect::<Vec<_>>().join(",");
    schedule.split_whitespace().map(field).collect::<Vec<_>>().join(" ")
}
