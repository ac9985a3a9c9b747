//! Logs on standard error: for people, or one JSON object a line.
//!
//! Standard output is reserved for answers. Times are UTC. Colour only where standard error is a terminal and
//! `NO_COLOR` is not set.

use std::io::IsTerminal as _;

use sexton_model::suggest::nearest;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Silences libraries whose logs only their authors need; lapin also puts the bodies of returned messages, and so
/// params, into its warnings. A filter that names them overrules this.
const DEFAULT_DIRECTIVES: &str = "lapin=off,sqlx=warn";
const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
/// Maximum length of a filter, in bytes.
const MAX_FILTER_BYTES: usize = 4096;

/// How to log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// The format of log lines.
    pub format: LogFormat,
    /// Which lines are written.
    pub filter: LogFilter,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// One JSON object a line, for machines.
    Json,
}

/// A checked filter, in the syntax of `RUST_LOG`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(String);

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogFilterError {
    /// A lone word would be a target, and would silence everything else.
    #[error("`{word}` is no level; did you mean `{suggestion}`?")]
    Level {
        /// The given word.
        word: String,
        /// The most similar level.
        suggestion: &'static str,
    },
    /// It does not parse.
    #[error("not a log filter ({0})")]
    Syntax(String),
    /// It exceeds the maximum length.
    #[error("longer than {MAX_FILTER_BYTES} bytes")]
    TooLong,
}

impl LogFilter {
    /// Checks `text`.
    ///
    /// # Errors
    ///
    /// [`LogFilterError`], also for misspelt levels, which the syntax itself would allow.
    pub fn parse(text: &str) -> Result<Self, LogFilterError> {
        if text.len() > MAX_FILTER_BYTES {
            return Err(LogFilterError::TooLong);
        }
        for word in text.split(',').map(str::trim) {
            let lower = word.to_ascii_lowercase();
            if LEVELS.contains(&lower.as_str()) {
                continue;
            }
            if let Some(suggestion) = nearest(&lower, LEVELS) {
                return Err(LogFilterError::Level { word: word.to_owned(), suggestion });
            }
            if !word.contains(['=', '[']) && !word.chars().all(is_target_character) {
                return Err(LogFilterError::Syntax("targets are separated by commas".to_owned()));
            }
        }
        let whole = format!("{DEFAULT_DIRECTIVES},{text}");
        EnvFilter::builder()
            .parse(&whole)
            .map_err(|error| LogFilterError::Syntax(error.to_string()))?;
        Ok(Self(whole))
    }

    fn build(&self) -> EnvFilter {
        EnvFilter::new(&self.0)
    }
}

fn is_target_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | ':' | '-' | '.')
}

/// Logging was already started in this process.
#[derive(Debug, thiserror::Error)]
#[error("logging is already started")]
pub struct AlreadyStarted;

/// Starts logging for the whole process; once, before anything else is started.
///
/// # Errors
///
/// [`AlreadyStarted`].
pub fn init(settings: &TelemetrySettings) -> Result<(), AlreadyStarted> {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let base = tracing_subscriber::fmt()
        .with_env_filter(settings.filter.build())
        .with_writer(std::io::stderr);
    let started = match settings.format {
        LogFormat::Pretty => {
            base.with_ansi(std::io::stderr().is_terminal() && !no_color).finish().try_init()
        }
        LogFormat::Json => base.json().flatten_event(true).finish().try_init(),
    };
    started.map_err(|_| AlreadyStarted)
}

#[cfg(test)]
mod tests {
    use tracing::level_filters::LevelFilter;

    use super::*;

    fn shown(text: &str) -> String {
        LogFilter::parse(text).unwrap().build().to_string()
    }

    #[test]
    fn noisy_libraries_stay_quiet_until_they_are_named() {
        let filter = shown("debug");
        assert!(filter.contains("lapin=off") && filter.contains("sqlx=warn"), "{filter}");
        let filter = shown("info,lapin=trace");
        assert!(filter.contains("lapin=trace") && !filter.contains("lapin=off"), "{filter}");
        let level = LogFilter::parse("info").unwrap().build().max_level_hint();
        assert_eq!(level, Some(LevelFilter::INFO));
    }

    #[test]
    fn usual_filters_are_accepted() {
        for text in [
            "info",
            "WARN",
            "off",
            "sexton_worker=debug,info",
            "sexton_worker::slot",
            "info,[attempt]=trace",
        ] {
            assert!(LogFilter::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_misspelt_level_is_refused_instead_of_silencing_everything() {
        assert_eq!(
            LogFilter::parse("inof,sexton_worker=debug"),
            Err(LogFilterError::Level { word: "inof".to_owned(), suggestion: "info" })
        );
        for text in ["sexton_worker=loud", "=", "a=b=c", "info;debug", "info debug"] {
            assert!(LogFilter::parse(text).is_err(), "{text} was accepted");
        }
    }
}
