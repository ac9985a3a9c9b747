//! The policy sheet of a job: what holds for it, in words, and what is missing.
//!
//! Five sections answer what people ask of every job: what is guaranteed, what excludes what, who notices that it did not
//! run, by which key its effects are distinguished, and where it ends if it fails. All is a function of the definition and of
//! what is known of the platform; [`no_deadline`] and [`no_destination`] are also rules of the [lint](crate::lint).

mod detection;
mod failure;
mod guarantee;
mod lock;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Serialize, Serializer};

use crate::job::JobSpec;
use crate::routing::Route;

pub use detection::{no_deadline, no_destination};

/// What the sheet says of a job beside its definition.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// The routes that are applied.
    pub routes: &'a [Route],
    /// Names of the live workers of the job's pool that offer its task type.
    pub workers: &'a [String],
    /// Whether the job is paused.
    pub is_paused: bool,
}

/// A section of the sheet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Section {
    /// What it is about.
    pub title: &'static str,
    /// What holds, in whole sentences.
    pub statements: Vec<String>,
    /// What is missing, and the remedies.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub missing: Vec<Gap>,
}

/// Something that is missing. Displays as two sentences: what it means, and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gap {
    /// What is missing and what that means; without a full stop.
    pub what: String,
    /// What to do with `object`: `Write`, `Start`.
    verb: &'static str,
    /// The field to write, or the thing to start or run.
    pub object: String,
}

impl Gap {
    fn new(what: impl Into<String>, verb: &'static str, object: impl Into<String>) -> Self {
        Self { what: what.into(), verb, object: object.into() }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.what.chars();
        let first = rest.next().map(|c| c.to_ascii_uppercase());
        let first = first.map_or_else(String::new, String::from);
        write!(f, "{first}{}. {} {}.", rest.as_str(), self.verb, self.object)
    }
}

impl Serialize for Gap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns the five sections of a job's sheet.
pub fn sheet(job: &JobSpec, known: &Circumstances<'_>) -> [Section; 5] {
    [
        guarantee::section(job, known),
        lock::section(job),
        detection::section(job, known),
        guarantee::key_section(job),
        failure::section(job),
    ]
}

/// Joins words as in "a, b and c".
fn join(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns a number of things, as in "1 retry" and "3 retries".
fn count(number: u32, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
