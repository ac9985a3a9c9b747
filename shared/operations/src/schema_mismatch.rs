//! Places at which params do not match the schema of a worker.

use serde::Serialize;

use crate::text::line;

/// Maximum number of mismatches listed for people.
const MAX_LISTED: usize = 50;
/// Maximum length of one, in characters.
const MAX_CHARS: usize = 400;

/// A place at which params do not match.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SchemaMismatch {
    /// JSON Pointer into the params; `/`: the params themselves.
    pub at: String,
    /// What the schema demands there, without the actual value.
    pub what: String,
    /// The workers that demand it, if workers disagree; at most ten of them.
    pub workers: Vec<String>,
}

impl SchemaMismatch {
    /// Returns its place as a pointer into a body that has the params in the field `params`.
    pub fn pointer_in_body(&self) -> String {
        let inside = if self.at == "/" { "" } else { &self.at };
        format!("/params{inside}")
    }

    /// Describes it in words.
    pub fn describe(&self) -> String {
        let by = match self.workers.as_slice() {
            [] => String::new(),
            workers => format!(" (by {})", workers.join(", ")),
        };
        line(&format!("{}: {}{by}", self.at, self.what), MAX_CHARS)
    }
}

/// Describes that params do not match, in a line for each of the first places.
pub(crate) fn describe_mismatches(task_type: &str, mismatches: &[SchemaMismatch]) -> String {
    let mut texts: Vec<String> =
        mismatches.iter().take(MAX_LISTED).map(SchemaMismatch::describe).collect();
    if mismatches.len() > MAX_LISTED {
        texts.push(format!("and {} more", mismatches.len() - MAX_LISTED));
    }
    format!(
        "the params do not fit what a worker's catalogue says of {}; nothing was done:\n  {}",
        line(task_type, 100),
        texts.join("\n  ")
    )
}
