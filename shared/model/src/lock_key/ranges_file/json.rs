//! Ranges in JSON: a list of objects, or an object whose `ranges` is one.
//!
//! A scanner of its own, since the library's values have no places. Texts and numbers are still read by the library.

use serde_json::Value;

use super::{Field, Kind, Place, Row, Rows};
use crate::quoting::{quoted, without_middle};

/// Reads the text's ranges. The first problem of the form is the last one that is found.
pub(super) fn read(text: &str, rows: &mut Rows) {
    let mut scanner = Scanner { text, at: 0, known: BEGIN };
    if let Err((at, message)) = scanner.document(rows) {
        rows.problem(scanner.place(at), None, message);
    }
}

/// The first byte, and its place.
const BEGIN: (usize, Place) = (0, Place { line: 1, column: 1 });

/// A byte offset, and what was expected there.
type Malformed = (usize, String);

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// The place of a byte offset: places are computed from the one before, since a line may have megabytes.
    known: (usize, Place),
}

impl Scanner<'_> {
    fn document(&mut self, rows: &mut Rows) -> Result<(), Malformed> {
        if self.accepts('{') {
            self.blanks();
            let at = self.at;
            if self.name()?.text != "ranges" {
                let message = "expected \"ranges\", as `sexton keys list --format json` writes it";
                return Err((at, message.to_owned()));
            }
            self.list(rows)?;
            self.expect('}')?;
        } else {
            self.list(rows)?;
        }
        self.blanks();
        if self.at < self.text.len() {
            return Err((self.at, "nothing may follow the ranges".to_owned()));
        }
        Ok(())
    }

    fn list(&mut self, rows: &mut Rows) -> Result<(), Malformed> {
        self.expect('[')?;
        if self.accepts(']') {
            return Ok(());
        }
        loop {
            self.blanks();
            let place = self.place(self.at);
            self.expect('{')?;
            let mut fields = Vec::new();
            if !self.accepts('}') {
                loop {
                    let name = self.name()?;
                    fields.push(self.value(name.text)?);
                    if !self.accepts(',') {
                        break;
                    }
                }
                self.expect('}')?;
            }
            rows.rows.push(Row { place, fields });
            if !self.accepts(',') {
                return self.expect(']');
            }
        }
    }

    /// Takes a field's name and the colon behind it.
    fn name(&mut self) -> Result<Field, Malformed> {
        self.blanks();
        let at = self.at;
        let name = self.value(String::new())?;
        if name.kind != Kind::Text {
            return Err((at, "expected a field's name in quotes".to_owned()));
        }
        self.expect(':')?;
        Ok(name)
    }

    /// Takes a text, a number, true, false or null.
    fn value(&mut self, name: String) -> Result<Field, Malformed> {
        self.blanks();
        let at = self.at;
        let whole = self.text;
        let rest = &whole[at..];
        let length = if rest.starts_with('"') {
            end_of_text(rest).ok_or_else(|| (at, "the quotation mark is not closed".to_owned()))?
        } else {
            rest.find(|c: char| c.is_whitespace() || ",:[]{}\"".contains(c)).unwrap_or(rest.len())
        };
        let text = &rest[..length];
        let value: Value = serde_json::from_str(text).map_err(|error| {
            let found = rest.chars().next().map_or("the end".to_owned(), |_| quoted(rest));
            let why = without_middle(&error.to_string());
            (at, format!("expected a text or a number, not {found} ({why})"))
        })?;
        self.at += length;
        let (kind, text) = match value {
            Value::String(text) => (Kind::Text, text),
            Value::Number(number) => (Kind::Number, number.to_string()),
            other => (Kind::Other, other.to_string()),
        };
        Ok(Field { name, text, kind, place: self.place(at) })
    }

    fn blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn accepts(&mut self, character: char) -> bool {
        self.blanks();
        let is_here = self.text[self.at..].starts_with(character);
        if is_here {
            self.at += character.len_utf8();
        }
        is_here
    }

    fn expect(&mut self, character: char) -> Result<(), Malformed> {
        if self.accepts(character) {
            Ok(())
        } else {
            Err((self.at, format!("expected {character:?}")))
        }
    }

    fn place(&mut self, at: usize) -> Place {
        let (from, mut place) = if self.known.0 <= at { self.known } else { BEGIN };
        for character in self.text[from..at].chars() {
            place = if character == '\n' {
                Place { line: place.line + 1, column: 1 }
            } else {
                Place { column: place.column + 1, ..place }
            };
        }
        self.known = (at, place);
        place
    }
}

/// Returns the length of a text in quotation marks, with both of them.
fn end_of_text(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}
