//! The kinds of values: how a text is parsed, and the allowed values, in words.
//!
//! A rule's reason and its `allowed` never repeat the text: the caller shows it, or must not.

mod identity;
mod network;
mod pools;
mod urls;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use regex::{Regex, RegexBuilder};
use sexton_model::access::Role;
use sexton_model::foreign::{MAX_PATTERNS, TypePatterns};

pub(crate) use self::identity::{IssuerUrl, PublicUrl, Roles, Scopes};
pub(crate) use self::network::{BasePath, HeaderName, Networks};
pub(crate) use self::pools::{PoolList, distribute_slots};
pub use self::urls::WatcherUrl;
pub(crate) use self::urls::{CollectorUrl, Server, Watcher};
use crate::telemetry::{LogFilter, LogFormat};

/// Memory limit of a compiled pattern, in bytes, and again of its lazily built automaton.
const PATTERN_MEMORY: usize = 1 << 20;

/// A rule that parses a text into a value.
pub(crate) trait Rule {
    /// The value's type.
    type Value;
    /// Returns the value, or the reason why the text is invalid.
    fn parse(&self, text: &str) -> Result<Self::Value, String>;
    /// Returns the allowed values, as a phrase.
    fn allowed(&self) -> String;
}

/// A whole number in a range, both ends included.
pub(crate) struct Whole {
    pub(crate) min: u32,
    pub(crate) max: u32,
}

impl Rule for Whole {
    type Value = u32;

    fn parse(&self, text: &str) -> Result<u32, String> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("not a whole number (digits only, no unit)".to_owned());
        }
        match text.parse() {
            Ok(number) if (self.min..=self.max).contains(&number) => Ok(number),
            _ => Err("outside the range".to_owned()),
        }
    }

    fn allowed(&self) -> String {
        format!("a whole number from {} to {}", self.min, self.max)
    }
}

/// A number of days, or for ever: `None`.
pub(crate) struct Days(pub(crate) Whole);

/// The word for that.
const FOREVER: &str = "forever";

impl Rule for Days {
    type Value = Option<u32>;

    fn parse(&self, text: &str) -> Result<Option<u32>, String> {
        if text == FOREVER { Ok(None) } else { self.0.parse(text).map(Some) }
    }

    fn allowed(&self) -> String {
        format!("{}, or `{FOREVER}`", self.0.allowed())
    }
}

/// A duration written as a whole number of milliseconds.
pub(crate) struct Milliseconds(pub(crate) Whole);

impl Rule for Milliseconds {
    type Value = Duration;

    fn parse(&self, text: &str) -> Result<Duration, String> {
        self.0.parse(text).map(|number| Duration::from_millis(number.into()))
    }

    fn allowed(&self) -> String {
        format!("{} (milliseconds)", self.0.allowed())
    }
}

/// A number in a range, both ends included, perhaps with a fraction.
pub(crate) struct Decimal {
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Rule for Decimal {
    type Value = f64;

    fn parse(&self, text: &str) -> Result<f64, String> {
        let number = f64::from_str(text)
            .map_err(|_| "not a number (write it with a point, like 1.5)".to_owned())?;
        // NaN is in no range.
        if (self.min..=self.max).contains(&number) {
            Ok(number)
        } else {
            Err("outside the range".to_owned())
        }
    }

    fn allowed(&self) -> String {
        format!("a number from {:.1} to {:.1}", self.min, self.max)
    }
}

/// A short name from a narrow alphabet.
pub(crate) struct Name {
    pub(crate) allowed: &'static str,
    pub(crate) max_bytes: usize,
    pub(crate) fits: fn(&str) -> bool,
}

impl Rule for Name {
    type Value = String;

    fn parse(&self, text: &str) -> Result<String, String> {
        if text.len() > self.max_bytes {
            Err(format!("{} bytes are too long", text.len()))
        } else if (self.fits)(text) {
            Ok(text.to_owned())
        } else {
            Err("not such a name".to_owned())
        }
    }

    fn allowed(&self) -> String {
        format!("{}; at most {} bytes", self.allowed, self.max_bytes)
    }
}

/// Any text up to a length.
pub(crate) struct Text {
    pub(crate) what: &'static str,
    pub(crate) max_bytes: usize,
}

impl Rule for Text {
    type Value = String;

    fn parse(&self, text: &str) -> Result<String, String> {
        if text.len() > self.max_bytes {
            return Err(format!("{} bytes are too long", text.len()));
        }
        Ok(text.to_owned())
    }

    fn allowed(&self) -> String {
        format!("{}, at most {} bytes", self.what, self.max_bytes)
    }
}

/// A regular expression that does not match the empty text.
pub(crate) struct Pattern {
    pub(crate) max_bytes: usize,
}

impl Rule for Pattern {
    type Value = Regex;

    fn parse(&self, text: &str) -> Result<Regex, String> {
        if text.len() > self.max_bytes {
            return Err(format!("{} bytes are too long", text.len()));
        }
        // The crate's own message shows the pattern over several lines.
        let pattern = RegexBuilder::new(text)
            .size_limit(PATTERN_MEMORY)
            .dfa_size_limit(PATTERN_MEMORY)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => "too large when compiled".to_owned(),
                _ => "not a regular expression".to_owned(),
            })?;
        if pattern.is_match("") {
            return Err("it matches the empty text, so it would be found everywhere".to_owned());
        }
        Ok(pattern)
    }

    fn allowed(&self) -> String {
        format!(
            "a regular expression (without look-around and back-references) that does not match \
             the empty text, at most {} bytes",
            self.max_bytes
        )
    }
}

/// Task types by name or prefix, see [`TypePatterns`].
pub(crate) struct TypeList;

impl Rule for TypeList {
    type Value = TypePatterns;

    fn parse(&self, text: &str) -> Result<TypePatterns, String> {
        TypePatterns::parse(text)
    }

    fn allowed(&self) -> String {
        format!(
            "1 to {MAX_PATTERNS} entries separated by commas, each a task type, or the beginning of one with a \
             `*` behind it"
        )
    }
}

/// A path. Parsing does not check that the file exists.
pub(crate) struct FilePath;

impl Rule for FilePath {
    type Value = PathBuf;

    fn parse(&self, text: &str) -> Result<PathBuf, String> {
        Ok(PathBuf::from(text))
    }

    fn allowed(&self) -> String {
        "a path; a relative one counts from the working directory".to_owned()
    }
}

/// An address to listen on.
pub(crate) struct Address;

impl Rule for Address {
    type Value = SocketAddr;

    fn parse(&self, text: &str) -> Result<SocketAddr, String> {
        text.parse().map_err(|_| "not an IP address and a port".to_owned())
    }

    fn allowed(&self) -> String {
        "IP:PORT or [IPv6]:PORT, like 127.0.0.1:8080 (no host names)".to_owned()
    }
}

/// [`LogFormat`] by name.
pub(crate) struct Format;

impl Rule for Format {
    type Value = LogFormat;

    fn parse(&self, text: &str) -> Result<LogFormat, String> {
        match text {
            "pretty" => Ok(LogFormat::Pretty),
            "json" => Ok(LogFormat::Json),
            _ => Err("no such format".to_owned()),
        }
    }

    fn allowed(&self) -> String {
        "pretty or json".to_owned()
    }
}

/// A role of the API, or none.
pub(crate) struct LocalRole;

impl Rule for LocalRole {
    type Value = Option<Role>;

    fn parse(&self, text: &str) -> Result<Option<Role>, String> {
        match (text, Role::parse(text)) {
            ("none", _) => Ok(None),
            (_, Some(role)) => Ok(Some(role)),
            (_, None) => Err("no such role".to_owned()),
        }
    }

    fn allowed(&self) -> String {
        "none, viewer, operator, editor or admin".to_owned()
    }
}

/// Off or on.
pub(crate) struct Switch;

impl Rule for Switch {
    type Value = bool;

    fn parse(&self, text: &str) -> Result<bool, String> {
        match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("neither true nor false".to_owned()),
        }
    }

    fn allowed(&self) -> String {
        "true or false".to_owned()
    }
}

/// A filter of log lines.
pub(crate) struct Filter;

impl Rule for Filter {
    type Value = LogFilter;

    fn parse(&self, text: &str) -> Result<LogFilter, String> {
        LogFilter::parse(text).map_err(|error| error.to_string())
    }

    fn allowed(&self) -> String {
        "a level (error, warn, info, debug, trace, off), or target=level pairs separated by \
         commas, like info,sexton_worker=debug"
            .to_owned()
    }
}
