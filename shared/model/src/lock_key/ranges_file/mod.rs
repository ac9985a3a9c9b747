//! Files of ranges: CSV with a heading, or JSON, as `sexton keys list` writes them.
//!
//! # Guarantees
//!
//! * All problems of a file are reported at once, each with line and column. Where a quotation mark or a bracket is missing,
//!   the text behind it has no certain meaning, so that is the last problem.
//! * Nothing is ignored: an unknown column is a problem. The columns that a list adds, such as `used`, are known.
//! * Size, ranges and problems are bounded, and no text makes it panic.

mod csv;
mod json;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use super::assignment::RangeRequest;
use super::range::{DEFAULT_KEYS, KeyRange, MAX_RANGES, RangeError, check_service};
use crate::quoting::{plain, quoted};
use crate::suggest::nearest;

/// Maximum length of a file, in bytes.
pub const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of problems reported.
pub const MAX_PROBLEMS: usize = 1_000;
/// Maximum length of a column's name that a problem keeps, in characters.
const MAX_KEPT_CHARS: usize = 256;

/// The columns of a file: what a range has, and what a list adds, which is not read.
const COLUMNS: [&str; 4] = ["service", "start", "keys", "end"];
const COLUMNS_OF_LISTS: [&str; 4] = ["used", "next", "assigned_by", "assigned_at"];

/// A problem. Displays as `keys.csv:3:9: start: "13x0" is no whole number`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeProblem {
    /// The file's name as given.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// The character of the line, counted from 1.
    pub column: usize,
    /// The column of the file; `None`: the problem concerns a whole row or the file.
    pub field: Option<String>,
    /// The problem and a valid form.
    pub message: String,
}

impl fmt::Display for RangeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if let Some(field) = &self.field {
            write!(f, "{}: ", plain(field))?;
        }
        f.write_str(&self.message)
    }
}

/// A place in a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// Counted from 1.
    pub line: usize,
    /// The character of the line, counted from 1.
    pub column: usize,
}

/// The ranges of a file, of one service at most one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RangesFile {
    /// Each range, with a start and a number of keys.
    pub requests: Vec<RangeRequest>,
    /// The place of each.
    pub places: Vec<Place>,
}

/// How a value is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// In CSV, where all values are alike.
    Plain,
    /// Text in JSON.
    Text,
    /// A number in JSON.
    Number,
    /// Another value in JSON.
    Other,
}

/// A value with its place and the name of its column.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    text: String,
    kind: Kind,
    place: Place,
}

/// A row with its values.
#[derive(Debug)]
struct Row {
    place: Place,
    fields: Vec<Field>,
}

/// The rows of a file, and what was wrong with its form.
#[derive(Debug, Default)]
struct Rows {
    rows: Vec<Row>,
    problems: Vec<(Place, Option<String>, String)>,
}

impl Rows {
    fn problem(&mut self, place: Place, field: Option<&str>, message: impl Into<String>) {
        // One more, so that the end says that there are others.
        if self.problems.len() <= MAX_PROBLEMS {
            let field = field.map(|field| field.chars().take(MAX_KEPT_CHARS).collect());
            self.problems.push((place, field, message.into()));
        }
    }
}

/// Parses a file. It is JSON if it begins with a bracket or a brace, and otherwise CSV with a heading.
///
/// # Errors
///
/// Every problem, in the order of the file.
pub fn parse(file_name: &str, text: &str) -> Result<RangesFile, Vec<RangeProblem>> {
    let mut rows = Rows::default();
    let begin = Place { line: 1, column: 1 };
    let mut file = RangesFile::default();
    if text.len() > MAX_FILE_BYTES {
        let message = format!("the file has {} bytes; {MAX_FILE_BYTES} at most", text.len());
        rows.problem(begin, None, message);
    } else {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim_start().starts_with(['[', '{']) {
            json::read(text, &mut rows);
        } else {
            csv::read(text, &mut rows);
        }
        file = ranges(&mut rows);
    }
    if rows.problems.is_empty() {
        return Ok(file);
    }
    rows.problems.sort_by_key(|(place, ..)| *place);
    if rows.problems.len() > MAX_PROBLEMS {
        rows.problems.truncate(MAX_PROBLEMS);
        let last = rows.problems.last().map_or(begin, |(place, ..)| *place);
        rows.problems.push((last, None, "and more problems behind it".to_owned()));
    }
    let problem = |(Place { line, column }, field, message)| RangeProblem {
        file: file_name.to_owned(),
        line,
        column,
        field,
        message,
    };
    Err(rows.problems.into_iter().map(problem).collect())
}

/// Reads the rows' values; problems are added to `rows`.
fn ranges(rows: &mut Rows) -> RangesFile {
    let mut file = RangesFile::default();
    let mut lines: HashMap<String, usize> = HashMap::new();
    let all = std::mem::take(&mut rows.rows);
    if all.len() > MAX_RANGES {
        let message = format!("the file has {} ranges; {MAX_RANGES} at most", all.len());
        rows.problem(Place { line: 1, column: 1 }, None, message);
        return file;
    }
    for row in all {
        let Some(request) = range(&row, rows) else { continue };
        match lines.entry(request.service.clone()) {
            Entry::Vacant(free) => {
                free.insert(row.place.line);
                file.requests.push(request);
                file.places.push(row.place);
            }
            Entry::Occupied(first) => {
                let message =
                    format!("{} has a range in line {} already", first.key(), first.get());
                rows.problem(row.place, Some("service"), message);
            }
        }
    }
    file
}

fn range(row: &Row, rows: &mut Rows) -> Option<RangeRequest> {
    let before = rows.problems.len();
    let mut values: HashMap<&str, &Field> = HashMap::new();
    for field in &row.fields {
        let name = field.name.as_str();
        if !COLUMNS.contains(&name) && !COLUMNS_OF_LISTS.contains(&name) {
            rows.problem(field.place, Some(name), unknown(name));
        } else if values.insert(name, field).is_some() {
            rows.problem(field.place, Some(name), "is there twice");
        }
    }
    let service = match values.get("service") {
        Some(field) if matches!(field.kind, Kind::Plain | Kind::Text) => Some(field.text.as_str()),
        Some(field) => {
            rows.problem(field.place, Some("service"), "must be text in quotes");
            None
        }
        None => {
            rows.problem(row.place, Some("service"), "is missing; write the name of a service");
            None
        }
    };
    if let (Some(service), Some(field)) = (service, values.get("service"))
        && let Err(error) = check_service(service)
    {
        rows.problem(field.place, Some("service"), error.to_string());
    }
    let mut number = |name: &str| {
        // An empty value of CSV is as none.
        let field =
            values.get(name).filter(|field| field.kind != Kind::Plain || !field.text.is_empty())?;
        let number = field.text.parse::<i64>().ok();
        let number = number.filter(|_| matches!(field.kind, Kind::Plain | Kind::Number));
        if number.is_none() {
            let message = match field.kind {
                Kind::Plain | Kind::Number => {
                    format!("{} is no whole number of 64 bits", quoted(&field.text))
                }
                Kind::Text | Kind::Other => "must be a number without quotes".to_owned(),
            };
            rows.problem(field.place, Some(name), message);
        }
        number
    };
    let (start, keys, end) = (number("start"), number("keys"), number("end"));
    if !values.contains_key("start") || values["start"].text.is_empty() {
        let place = values.get("start").map_or(row.place, |field| field.place);
        rows.problem(place, Some("start"), "is missing; write the first key");
    }
    if rows.problems.len() > before {
        return None;
    }
    let (service, start) = (service?, start?);
    let keys = keys.unwrap_or(DEFAULT_KEYS.into());
    let place_of = |name: &str| values.get(name).map_or(row.place, |field| field.place);
    let made = u32::try_from(keys)
        .map_err(|_| RangeError::Keys(keys))
        .and_then(|keys| KeyRange::new(service, start, keys));
    match made {
        Ok(range) if end.is_some_and(|end| end != range.last()) => {
            let message = format!("{keys} keys from {start} on end with {}", range.last());
            rows.problem(place_of("end"), Some("end"), message);
            None
        }
        Ok(range) => Some(RangeRequest {
            service: service.to_owned(),
            first: Some(range.first()),
            keys: Some(range.keys()),
        }),
        Err(error) => {
            let field = if matches!(error, RangeError::Keys(_)) { "keys" } else { "start" };
            rows.problem(place_of(field), Some(field), error.to_string());
            None
        }
    }
}

fn unknown(name: &str) -> String {
    match nearest(name, COLUMNS) {
        Some(suggestion) => format!("is no column; did you mean {suggestion}?"),
        None => format!("is no column; there are {}", COLUMNS.join(", ")),
    }
}

#[cfg(test)]
mod tests;
