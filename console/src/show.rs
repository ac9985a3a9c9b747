//! Output: tables and facts for people, one JSON document for programs.
//!
//! Text from the database is never written to a terminal as it is; see [`line()`]. Colour only where
//! standard output is a terminal and `NO_COLOR` is not set. A reader that leaves early ends the
//! command quietly.

mod hex;
mod progress;
mod sparkline;
mod table;

use std::io::{IsTerminal as _, Write as _};

use serde::Serialize;
use sexton_operations::text::json_line;

use crate::failure::Failure;

pub use hex::hex_dump;
pub use progress::Progress;
pub use sexton_operations::text::{
    ago, ascii_controls, duration, instant, line, lines, precise, roughly,
};
pub use sparkline::sparkline;
pub use table::{Cell, Facts, Table, Tone};

/// Where answers go.
#[derive(Debug)]
pub struct Output {
    json: bool,
    color: bool,
    terminal: bool,
}

impl Output {
    /// Standard output, with one JSON document if `json`.
    pub fn new(json: bool) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { json, color: terminal && !no_color, terminal }
    }

    /// Whether one JSON document is wanted.
    pub const fn is_json(&self) -> bool {
        self.json
    }

    /// Writes a line. The caller has made it safe.
    ///
    /// # Errors
    ///
    /// [`Failure::Closed`] when nobody reads any more.
    pub fn print(&self, text: impl AsRef<str>) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_ref().as_bytes())?;
        stdout.write_all(b"\n")?;
        Ok(stdout.flush()?)
    }

    /// Writes a line to standard error, beside the answer. The caller has made it safe.
    pub fn note(&self, text: &str) {
        // Nobody may be reading there; the answer counts.
        let _ = writeln!(std::io::stderr().lock(), "sexton: {text}");
    }

    /// Writes the one document.
    ///
    /// # Errors
    ///
    /// [`Failure::Closed`] when nobody reads any more.
    pub fn document(&self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(document)
            .map_err(|error| Failure::Failed(format!("the answer is no JSON: {error}")))?;
        self.print(ascii_controls(&text))
    }

    /// Writes one of several documents, on a line of its own.
    ///
    /// # Errors
    ///
    /// [`Failure::Closed`] when nobody reads any more.
    pub fn record(&self, document: &impl Serialize) -> Result<(), Failure> {
        self.print(record_line(document)?)
    }

    /// Writes a table.
    ///
    /// # Errors
    ///
    /// [`Failure::Closed`] when nobody reads any more.
    pub fn table(&self, table: Table) -> Result<(), Failure> {
        self.print(table.render(self.color, self.terminal))
    }

    /// Writes named values.
    ///
    /// # Errors
    ///
    /// [`Failure::Closed`] when nobody reads any more.
    pub fn facts(&self, facts: Facts) -> Result<(), Failure> {
        self.print(facts.render(self.color, self.terminal))
    }
}

/// Returns the line of one of several documents.
///
/// # Errors
///
/// [`Failure::Failed`] for what is no JSON.
pub fn record_line(document: &impl Serialize) -> Result<String, Failure> {
    json_line(document).map_err(|error| Failure::Failed(format!("the answer is no JSON: {error}")))
}
