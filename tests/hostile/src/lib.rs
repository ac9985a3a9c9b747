//! The rules of every reader of foreign input, whatever the input: the targets of the fuzzer.
//!
//! A target takes any bytes, passes them to one reader of the platform, and panics if the answer
//! breaks a rule. `fuzz/` connects the targets to a fuzzer that searches for such bytes; the tests
//! here run them on each file of the corpora in `fuzz/corpus`, and so need no fuzzer.
//!
//! # What is asserted
//!
//! - No panic, and no overflow of a number.
//! - What was accepted is within its limits, and written and read again it is the same.
//! - A refusal names the place inside the input, and lists all problems at once where the reader
//!   guarantees that.
//! - Messages are bounded, and contain no terminal control: see [`error_text`].
//!
//! The fuzzer itself watches time and memory: `scripts/fuzz.sh`.

mod catalogue;
mod cron;
mod cron_jobs;
mod crontab;
pub mod error_text;
mod headers;
mod imported;
mod jobs_file;
mod json_lines;
mod manifest;
mod message;
mod output;
mod ranges_file;
mod shape;
#[cfg(test)]
mod tests;
mod toml_text;

/// A reader with its rules.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of its corpus and of its fuzzer.
    pub name: &'static str,
    /// Panics if the input makes the reader break a rule.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 11] = [
    Target { name: "message", run: message::run },
    Target { name: "headers", run: headers::run },
    Target { name: "cron", run: cron::run },
    Target { name: "jobs_file", run: jobs_file::run },
    Target { name: "cron_jobs", run: cron_jobs::run },
    Target { name: "crontab", run: crontab::run },
    Target { name: "manifest", run: manifest::run },
    Target { name: "catalogue", run: catalogue::run },
    Target { name: "json_lines", run: json_lines::run },
    Target { name: "output", run: output::run },
    Target { name: "ranges_file", run: ranges_file::run },
];

/// The target of that name.
///
/// # Panics
///
/// If no target has the name.
pub fn target(name: &str) -> Target {
    let found = TARGETS.into_iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("no target {name}"))
}
