//! Typed configuration from environment variables.
//!
//! Every setting is described once, in the settings table: meaning, unit, default, what is allowed,
//! what one pays for more or less of it. Reading, `--help` and `docs/reference/settings.md` all come from
//! that table, so they cannot disagree.
//!
//! Guarantees: *all* problems are reported together, each with name, reason and what is allowed;
//! a misspelt `SEXTON_…`, `CRON_…` or `WORKER_…` variable is a problem, never ignored; a password is
//! in no message, whatever is wrong with its URL. An empty value counts as not set, because that is
//! what `NAME=` means in most deployment tools.
//!
//! It does not connect anywhere, read files, or look into `CRON_JOBS`.

mod help;
mod problem;
mod programs;
mod reader;
mod rule;
mod server_url;
mod setting;
mod table;
mod unknown;

pub use help::{help, markdown};
pub use problem::{Problem, SettingsErrors};
pub use programs::{
    ConsoleSettings, FailedLimits, SchedulerSettings, ServiceSettings, WorkerSettings,
};
pub use rule::LogFormat;
pub use server_url::{ServerKind, ServerUrl, ServerUrlError};
pub use setting::Program;
pub use unknown::unknown_setting_reason;

/// Whether `name` is that of a setting, of whichever program.
pub fn is_setting(name: &str) -> bool {
    table::settings().any(|setting| setting.about().name == name)
}

/// Environment variables of this process, as `from_env` wants them.
///
/// Bytes that are not UTF-8 become U+FFFD, which no setting accepts: they are reported with the
/// setting's name instead of ending the process in the middle of reading.
pub fn process_environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().map(|(name, value)| {
        (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
    })
}
