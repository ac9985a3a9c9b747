//! Reads a crontab, of a user or of the system, as Vixie cron and its descendants do.
//!
//! A variable holds for the entries below it. What a variable or an entry means that a job cannot say
//! is left out with its line; a line that cannot be read takes nothing from the others.

mod command;
mod variables;

use chrono::{DateTime, Utc};
use sexton_model::cron::{Dialect, Expression};
use sexton_model::jobs_file::limits::MAX_DESCRIPTION_BYTES;
use sexton_model::ticket::shorten;
use sexton_model::zone::Zone;

use super::names::{Names, word_of};
use super::{Entry, Imported, LeftOut, MAX_ENTRIES, MAX_FILE_BYTES, Refused, finish};
use variables::Variables;

/// What the text alone does not say.
#[derive(Clone, Debug)]
pub struct Options {
    /// There is a column for the user, as in `/etc/crontab`.
    pub system: bool,
    /// The zone of entries above any `CRON_TZ`: that of the host.
    pub zone: Zone,
    /// The first part of the jobs' names.
    pub service: String,
}

/// Of a comment above an entry so many lines, of so many characters each, become its description.
const MAX_COMMENT_LINES: usize = 20;
const MAX_COMMENT_CHARS: usize = 500;

/// What cron does otherwise than a job without further fields.
const REMARKS: [&str; 4] = [
    "Otherwise than with cron, unless a job says so: an attempt ends after 1h (timeout), one that \
     fails is tried again (retry), a firing that was missed is made up for once (misfire), and the \
     program finds its params, {}, on standard input.",
    "Commands run in the directory of the worker, unless the crontab sets HOME, and with PATH, HOME, \
     LANG, TZ and the like of its environment.",
    "A user other than the worker's own needs a worker that runs as root.",
    "H in place of a minute spreads jobs that need no particular one.",
];

/// Reads the text; the entries are sound but not checked as jobs yet, see [`import`].
///
/// # Errors
///
/// [`Refused`] for a text that is too long.
pub fn read(text: &str, options: &Options) -> Result<Imported, Refused> {
    if text.len() > MAX_FILE_BYTES {
        return Err(Refused::TooLong(text.len()));
    }
    let mut reader = Reader {
        options,
        variables: Variables::new(options.zone),
        names: Names::default(),
        above: Vec::new(),
        imported: Imported::default(),
    };
    for (index, line) in text.lines().enumerate() {
        reader.line(index + 1, line);
        if reader.imported.entries.len() > MAX_ENTRIES {
            return Err(Refused::TooMany);
        }
    }
    Ok(reader.imported)
}

/// Reads the text, and checks each job as it would be applied at `now`.
///
/// # Errors
///
/// As [`read`].
pub fn import(text: &str, options: &Options, now: DateTime<Utc>) -> Result<Imported, Refused> {
    let mut imported = read(text, options)?;
    imported.remarks.extend(REMARKS.map(str::to_owned));
    let zone = options.zone;
    imported.remarks.push(format!(
        "Entries above any CRON_TZ are in {zone}: say --tz for the zone of the crontab's host. A TZ is \
         handed on to commands, and says nothing of schedules."
    ));
    Ok(finish(imported, now))
}

struct Reader<'o> {
    options: &'o Options,
    variables: Variables,
    names: Names,
    /// The lines of the comment directly above.
    above: Vec<String>,
    imported: Imported,
}

impl Reader<'_> {
    fn line(&mut self, number: usize, line: &str) {
        let line = line.trim_matches([' ', '\t', '\r']);
        if line.is_empty() {
            self.above.clear();
        } else if let Some(comment) = line.strip_prefix('#') {
            self.comment(comment.trim_start_matches('#').trim());
        } else if let Some((name, value)) = variables::assignment(line) {
            self.above.clear();
            if let Err((entry, why)) = self.variables.set(&name, &value) {
                self.imported.leave_out(LeftOut::new(number, entry, line, why));
            }
        } else {
            let description = std::mem::take(&mut self.above).join(" ");
            match self.entry(number, line, &description) {
                Ok(entry) => self.imported.entries.push(entry),
                Err(why) => self.imported.leave_out(LeftOut::new(number, true, line, why)),
            }
        }
    }

    /// Remembers a comment unless it is an entry that somebody took out, or the list of the columns.
    fn comment(&mut self, text: &str) {
        let switched_off = split(text, self.options.system)
            .is_ok_and(|parts| Expression::parse(parts.schedule, Dialect::Unix5, "").is_ok());
        let columns = text.split_whitespace().take(2).eq(["m", "h"]);
        if switched_off || columns || text.is_empty() {
            self.above.clear();
        } else if self.above.len() < MAX_COMMENT_LINES {
            self.above.push(crate::show::line(text, MAX_COMMENT_CHARS));
        }
    }

    fn entry(&mut self, line: usize, text: &str, description: &str) -> Result<Entry, String> {
        let parts = split(text, self.options.system)?;
        let zone = self.variables.zone()?;
        let schedule = spread(parts.schedule);
        let read = Expression::parse(&schedule, Dialect::Unix5, "");
        read.map_err(|error| error.to_string())?;
        let (program, mut remarks) = command::program(parts.command, &self.variables)?;
        if schedule != parts.schedule {
            remarks.push(format!("{} was a random number of cron's own", parts.schedule));
        }
        let program = super::Program { user: parts.user.map(str::to_owned), ..program };
        let name = self.names.unique(&self.options.service, &word_of(parts.command));
        Ok(Entry {
            line,
            task: name.clone(),
            name,
            description: shorten(description, MAX_DESCRIPTION_BYTES).to_owned(),
            schedule,
            zone,
            overlap: None,
            misfire_window: None,
            max_retries: None,
            timeout: None,
            labels: std::collections::BTreeMap::new(),
            program,
            remarks,
            suspended: false,
        })
    }
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

/// `a~b` is a random number in some crons, drawn at each start: `H(a-b)` is one for good.
fn spread(schedule: &str) -> String {
    if !schedule.contains('~') {
        return schedule.to_owned();
    }
    let item = |item: &str| match item.split_once('~') {
        Some(("", "")) => "H".to_owned(),
        Some((from, to)) if !from.is_empty() && !to.is_empty() => format!("H({from}-{to})"),
        _ => item.to_owned(),
    };
    let field = |field: &str| field.split(',').map(item).collect::<Vec<_>>().join(",");
    schedule.split_whitespace().map(field).collect::<Vec<_>>().join(" ")
}
