//! The variables of a crontab: each holds for the entries below it.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::zone::Zone;

const DEFAULT_SHELL: &str = "/bin/sh";
/// Where cron looks for programs, unless the crontab says otherwise.
const DEFAULT_PATH: &str = "/usr/bin:/bin";
/// The most variables: a catalogue's entry has no more, and two are always set.
const MAX_VARIABLES: usize = 198;
/// The longest value, as a catalogue takes it, with room for its name.
const MAX_VALUE_BYTES: usize = 31 * 1024;
/// The longest path of a directory, likewise.
const MAX_PATH_BYTES: usize = 4_000;
const MINUTES_OF_A_DAY: u64 = 24 * 60;

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
    /// By how much cronie delays an entry at most.
    random_delay: Option<Duration>,
    set: BTreeMap<String, String>,
}

impl Variables {
    pub(super) fn new(zone: Zone) -> Self {
        let (shell, set) = (DEFAULT_SHELL.to_owned(), BTreeMap::new());
        Self { zone: Ok(zone), shell, random_delay: None, set }
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

    pub(super) const fn random_delay(&self) -> Option<Duration> {
        self.random_delay
    }

    /// Where cron starts a command, if the crontab says so.
    pub(super) fn home(&self) -> Option<&str> {
        self.set.get("HOME").map(String::as_str).filter(|home| home.starts_with('/'))
    }

    /// What cron sets for every command, and what the crontab does.
    pub(super) fn environment(&self) -> BTreeMap<String, String> {
        let mut all = self.set.clone();
        all.entry("PATH".to_owned()).or_insert_with(|| DEFAULT_PATH.to_owned());
        all.insert("SHELL".to_owned(), self.shell.clone());
        all
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
            "RANDOM_DELAY" => {
                let minutes = value.parse().ok().filter(|minutes| *minutes <= MINUTES_OF_A_DAY);
                self.random_delay =
                    minutes.map(Duration::from_mins).filter(|delay| !delay.is_zero());
                match minutes {
                    Some(_) => Ok(()),
                    None => lost(
                        "it is no number of minutes of at most a day; write jitter in the jobs",
                    ),
                }
            }
            "LOGNAME" => {
                lost("cron does not let it be set either; it is the name of the task's user")
            }
            _ if value.contains('\0') => lost("it holds a null character"),
            "SHELL" | "HOME" if value.len() > MAX_PATH_BYTES => lost("no path is as long"),
            "SHELL" if value.starts_with('/') => {
                value.clone_into(&mut self.shell);
                Ok(())
            }
            "SHELL" => lost("it is no absolute path; commands run in the shell before"),
            _ if value.len() > MAX_VALUE_BYTES => {
                lost("it has more than 31 KiB, which is what a catalogue takes")
            }
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
