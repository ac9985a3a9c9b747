//! Words for people in answers: text of others on one line and without escapes, instants and durations.
//!
//! Evidence and reasons are sentences, and they are the same in a terminal, a page and an API's answer. They quote
//! what tasks, brokers and operators wrote, so a quoted text is made safe here, where the sentence is written.

mod safe;
mod time;

use serde::Serialize;

pub use safe::{ascii_controls, line, lines};
pub use time::{ago, duration, instant, precise, roughly};

/// Returns the line of one of several documents, in JSON, without its line feed.
///
/// # Errors
///
/// A document that is no JSON.
pub fn json_line(document: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(ascii_controls(&serde_json::to_string(document)?))
}
