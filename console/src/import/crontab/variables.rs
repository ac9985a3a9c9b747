//! The variables of a crontab: each holds for the entries below it.

use std::collections::BTreeMap;

use sexton_model::zone::Zone;

const DEFAULT_SHELL: &str = "/bin/sh";
/// The most variables: a catalogue's entry has no more.
const MAX_VARIABLES: usize = 200;

/// `NAME=value` or `"NAME" = 'value'`, as cron reads it; `None` for any other line.
pub(super) fn assignment(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    let name = unquoted(name.trim());
    let first = name.chars().next()?;
    let sound = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (sound && (first.is_ascii_alphabetic() || first == '_'))
        .then(|| (name.to_owned(), unquoted(value.trim()).to_owned()))
}

fn unquoted(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

pub(super) struct Variables {
    /// Why there is none, if the last `CRON_TZ` could not be read.
    zone: Result<Zone, String>,
    shell: String,
    set: BTreeMap<String, String>,
}

impl Variables {
    pub(super) fn new(zone: Zone) -> Self {
        Self { zone: Ok(zone), shell: DEFAULT_SHELL.to_owned(), set: BTreeMap::new() }
    }

    /// The zone of the entries that follow.
    ///
    /// # Errors
    ///
    /// What `CRON_TZ` says is no zone: nobody knows when they would fire.
    pub(super) fn zone(&self) -> Result<Zone, String> {
        self.zone.clone().map_err(|why| format!("its CRON_TZ cannot be read: {why}"))
    }

    pub(super) fn shell(&self) -> &str {
        &self.shell
    }

    /// Where cron starts a command.
    pub(super) fn home(&self) -> Option<&str> {
        self.set.get("HOME").map(String::as_str)
    }

    pub(super) fn environment(&self) -> &BTreeMap<String, String> {
        &self.set
    }

    /// # Errors
    ///
    /// Why it is left out, and whether entries are with it.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), (bool, String)> {
        let lost = |why: &str| Err((false, why.to_owned()));
        match name {
            "CRON_TZ" => {
                self.zone = Zone::parse(value).map_err(|error| error.to_string());
                self.zone.clone().map(drop).map_err(|why| (true, why))
            }
            "MAILTO" | "MAILFROM" if value.is_empty() => Ok(()),
            "MAILTO" | "MAILFROM" => lost(
                "no mail is sent of what a task writes; `sexton executions logs` shows it, and what \
                 fails waits in `sexton failed list`",
            ),
            "RANDOM_DELAY" => lost("write H in place of the minute"),
            "SHELL" if value.starts_with('/') => {
                value.clone_into(&mut self.shell);
                Ok(())
            }
            "SHELL" => lost("it is no absolute path; commands run in the shell before"),
            _ if value.contains('\0') => lost("it holds a null character"),
            _ if self.set.len() >= MAX_VARIABLES && !self.set.contains_key(name) => {
                lost("a catalogue's entry has at most 200 variables")
            }
            _ => {
                self.set.insert(name.to_owned(), value.to_owned());
                Ok(())
            }
        }
    }
}
