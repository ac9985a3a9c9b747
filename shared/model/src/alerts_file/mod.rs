//! The alerts file: channels and routes, parsed and checked.
//!
//! # Guarantees
//!
//! * Channels and routes from here keep every limit and can be stored as they are. They hold references to secrets, and no
//!   secret.
//! * All problems of a file are reported at once, each with its line and place. Syntax errors are the exception: after the
//!   first one the remaining text has no certain meaning.
//! * Nothing is ignored: an unknown field is a problem.
//! * Text, numbers and problems are bounded, and no text makes it panic.

mod channel;
pub(crate) mod problem;
mod route;
#[cfg(test)]
mod tests;
mod write;

use std::collections::HashMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::channel::Channel;
use crate::jobs_file::fields::{Fields, kind, report_duplicate_name};
use crate::jobs_file::problem::Report;
use crate::routing::Route;

pub use problem::AlertsProblem;

/// Maximum length of an alerts file, in bytes.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;
/// Maximum number of channels.
pub const MAX_CHANNELS: usize = 100;
/// Maximum number of routes.
pub const MAX_ROUTES: usize = 200;

/// The content of an alerts file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AlertsFile {
    /// The channels, in the order of the file.
    pub channels: Vec<Channel>,
    /// The routes, in the order of the file.
    pub routes: Vec<Route>,
}

/// Parses an alerts file. `file_name` is only repeated in problems. A file without channels is valid.
///
/// # Errors
///
/// Every problem of the file, in the order of its lines. Nothing of a file with a problem should be applied.
pub fn parse(file_name: &str, text: &str) -> Result<AlertsFile, Vec<AlertsProblem>> {
    parse_document(file_name, text, MAX_FILE_BYTES, read)
}

/// Parses a file of at most `max_bytes`, and reads the document that it holds.
pub(crate) fn parse_document<T: Default>(
    file_name: &str,
    text: &str,
    max_bytes: usize,
    read: impl FnOnce(&DeTable<'_>, &mut Report<'_>) -> T,
) -> Result<T, Vec<AlertsProblem>> {
    let is_too_long = text.len() > max_bytes;
    let mut report = Report::new(file_name, if is_too_long { "" } else { text });
    let mut content = T::default();
    if is_too_long {
        let message = format!("the file has {} bytes; {max_bytes} at most", text.len());
        report.add(None, None, None, message);
    } else {
        match DeTable::parse(text) {
            Ok(document) => content = read(document.get_ref(), &mut report),
            Err(error) => {
                let offset = error.span().map(|span| span.start.min(text.len()));
                let column = offset
                    .map_or(String::new(), |offset| format!("column {}: ", report.column(offset)));
                report.add(offset, None, None, format!("{column}{}", error.message()));
            }
        }
    }
    if report.count() == 0 { Ok(content) } else { Err(problem::of_report(report)) }
}

fn read(document: &DeTable<'_>, report: &mut Report<'_>) -> AlertsFile {
    let hints = [("channels", "write [[channel]]"), ("routes", "write [[route]]")];
    Fields::of_file(document, report).report_unknown_fields(&["channel", "route"], &[], &hints);
    let tables = tables(document, "channel", MAX_CHANNELS, report);
    let mut lines = HashMap::new();
    let mut channels = Vec::with_capacity(tables.len());
    let places: Vec<String> = (1..)
        .zip(&tables)
        .map(|(number, (table, _))| {
            let name = table.get("name").and_then(|name| name.get_ref().as_str());
            name.map_or_else(|| format!("channel {number}"), problem::place_of_channel)
        })
        .collect();
    for ((table, at), place) in tables.iter().zip(&places) {
        report_duplicate_name(table, "channel", Some(place), report, &mut lines);
        channels.extend(channel::read(&mut Fields::of_flow(table, *at, Some(place), report)));
    }
    let known: Vec<&str> = lines.keys().copied().collect();
    let tables = self::tables(document, "route", MAX_ROUTES, report);
    let places: Vec<String> = (1..=tables.len()).map(|number| format!("route {number}")).collect();
    let mut routes = Vec::with_capacity(tables.len());
    for ((table, at), place) in tables.iter().zip(&places) {
        routes.push(route::read(&mut Fields::of_flow(table, *at, Some(place), report), &known));
    }
    AlertsFile { channels, routes }
}

/// Returns the tables `[[name]]` with their offsets; empty, and reported, if there are too many.
pub(crate) fn tables<'a>(
    document: &'a DeTable<'a>,
    name: &'static str,
    max: usize,
    report: &mut Report<'_>,
) -> Vec<(&'a DeTable<'a>, usize)> {
    let Some(value) = document.get(name) else { return Vec::new() };
    let wrong = |value: &Spanned<DeValue<'_>>, report: &mut Report<'_>| {
        let message = format!("is {}; write [[{name}]] before each", kind(value.get_ref()));
        report.add(Some(value.span().start), None, Some(name), message);
    };
    let Some(array) = value.get_ref().as_array() else {
        wrong(value, report);
        return Vec::new();
    };
    if array.len() > max {
        let message = format!("the file has {} {name}s; {max} at most", array.len());
        report.add(None, None, None, message);
        return Vec::new();
    }
    let mut tables = Vec::with_capacity(array.len());
    for value in array {
        match value.get_ref() {
            DeValue::Table(table) => tables.push((table, value.span().start)),
            _ => wrong(value, report),
        }
    }
    tables
}
