//! Ranges in CSV: RFC 4180, the first line a heading, with commas or semicolons.

use super::{COLUMNS, COLUMNS_OF_LISTS, Field, Kind, Place, Row, Rows, unknown};

/// Splits the text into rows.
pub(super) fn read(text: &str, rows: &mut Rows) {
    let mut records = Records { text, at: 0, place: Place { line: 1, column: 1 }, separator: ',' };
    // Spreadsheets of many languages write semicolons.
    let heading = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if !heading.contains(',') && heading.contains(';') {
        records.separator = ';';
    }
    let Some(heading) = records.next(rows) else {
        rows.problem(
            records.place,
            None,
            "the file is empty; its first line names the columns: service,start,keys",
        );
        return;
    };
    let mut names: Vec<String> = Vec::new();
    for (place, name) in &heading {
        let name = name.trim().to_ascii_lowercase();
        if !COLUMNS.contains(&name.as_str()) && !COLUMNS_OF_LISTS.contains(&name.as_str()) {
            rows.problem(*place, Some(&name), unknown(&name));
        } else if names.contains(&name) {
            rows.problem(*place, Some(&name), "is there twice");
        }
        names.push(name);
    }
    for needed in ["service", "start"] {
        if !names.iter().any(|name| name == needed) {
            rows.problem(
                heading[0].0,
                Some(needed),
                "is missing in the first line, which names the columns",
            );
        }
    }
    if !rows.problems.is_empty() {
        return;
    }
    while let Some(record) = records.next(rows) {
        let place = record[0].0;
        if record.len() != names.len() {
            let message = format!("has {} values for {} columns", record.len(), names.len());
            rows.problem(place, None, message);
            continue;
        }
        let fields = names.iter().zip(record).map(|(name, (place, text))| Field {
            name: name.clone(),
            text: text.trim().to_owned(),
            kind: Kind::Plain,
            place,
        });
        let fields = fields.collect();
        rows.rows.push(Row { place, fields });
    }
}

/// Values with their places, a record at a time.
struct Records<'a> {
    text: &'a str,
    at: usize,
    place: Place,
    separator: char,
}

impl Records<'_> {
    /// Returns the next record that is not blank; it has a value at least.
    fn next(&mut self, rows: &mut Rows) -> Option<Vec<(Place, String)>> {
        loop {
            let begin = self.peek()?;
            let record = self.record(rows);
            if record.len() > 1 || !record[0].1.trim().is_empty() || begin == '"' {
                return Some(record);
            }
        }
    }

    fn record(&mut self, rows: &mut Rows) -> Vec<(Place, String)> {
        let mut values = Vec::new();
        loop {
            let place = self.place;
            let value = if self.peek() == Some('"') { self.quoted(rows) } else { String::new() };
            values.push((place, value + &self.plain()));
            match self.take() {
                Some(character) if character == self.separator => {}
                _ => return values,
            }
        }
    }

    /// Takes text up to a separator or the end of the line.
    fn plain(&mut self) -> String {
        let mut value = String::new();
        while let Some(character) = self.peek().filter(|c| *c != self.separator && *c != '\n') {
            value.push(character);
            self.take();
        }
        if value.ends_with('\r') {
            value.pop();
        }
        value
    }

    /// Takes text in quotation marks, each of which is doubled within.
    fn quoted(&mut self, rows: &mut Rows) -> String {
        let begin = self.place;
        self.take();
        let mut value = String::new();
        loop {
            match self.take() {
                Some('"') if self.peek() == Some('"') => {
                    self.take();
                    value.push('"');
                }
                Some('"') => return value,
                Some(character) => value.push(character),
                None => {
                    rows.problem(begin, None, "the quotation mark is not closed");
                    return value;
                }
            }
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        self.place = if character == '\n' {
            Place { line: self.place.line + 1, column: 1 }
        } else {
            Place { column: self.place.column + 1, ..self.place }
        };
        Some(character)
    }
}
