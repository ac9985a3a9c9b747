//! Typed configuration from environment variables.
//!
//! The settings table describes every setting once: meaning, unit, default, allowed values, and the cost of more or
//! less. Parsing, `--help` and `docs/reference/settings.md` all come from that table, so they cannot disagree.
//!
//! Guarantees: *all* problems are reported together, each with name, reason and the allowed values; a misspelt
//! `SEXTON_…`, `CRON_…` or `WORKER_…` variable is a problem, never ignored; no message contains a password, even if
//! its URL is invalid. An empty value counts as not set, which is the meaning of `NAME=` in most deployment tools.
//!
//! It does not connect anywhere, read files, or parse `CRON_JOBS`.

mod effective;
mod help;
mod problem;
mod programs;
mod reader;
mod rule;
mod server_url;
mod setting;
mod table;
mod unknown;

use std::ffi::OsString;

use setting::AnySetting;

pub use effective::{EffectiveSetting, SettingSource};
pub use help::{help, markdown};
pub use problem::{Problem, SettingsErrors};
pub use programs::{
    ConsoleSettings, FailedLimits, SchedulerSettings, ServerSettings, ServiceSettings,
    WorkerSettings,
};
pub use rule::WatcherUrl;
pub use server_url::{ServerKind, ServerUrl, ServerUrlError};
pub use setting::Program;
pub use unknown::unknown_setting_reason;

/// Returns whether `name` is a setting of any program.
pub fn is_setting(name: &str) -> bool {
    table::settings().any(|setting| setting.about().name == name)
}

/// Returns the environment variables of this process, for `from_env`.
///
/// Bytes that are not UTF-8 become U+FFFD, which no setting accepts: they are reported with the setting's name
/// instead of ending the process.
pub fn process_environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().map(|(name, value)| {
        (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
    })
}

/// Returns the environment variables of this process that channels and heartbeats may have as secrets: all but the secrets among the
/// settings, such as the password of the database, which no other system needs.
pub fn variables_for_others() -> impl Iterator<Item = (OsString, OsString)> {
    without_secrets(std::env::vars_os())
}

fn without_secrets(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    let secrets = table::settings().map(AnySetting::about).filter(|setting| setting.secret);
    let secrets: Vec<&str> = secrets.map(|setting| setting.name).collect();
    variables.filter(move |(name, _)| !secrets.iter().any(|secret| name == secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_systems_are_sent_no_secret_of_the_settings() {
        let names = ["DATABASE_URL", "AMQP_URL", "SLACK_URL", "DB_POOL_SIZE"];
        let variables = names.map(|name| (name.into(), "x".into())).into_iter();
        let left: Vec<OsString> = without_secrets(variables).map(|(name, _)| name).collect();
        assert_eq!(left, ["SLACK_URL", "DB_POOL_SIZE"]);
    }
}
