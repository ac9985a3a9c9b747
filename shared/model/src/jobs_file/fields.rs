//! Parses the fields of one TOML table, each within its limits, and reports problems.
//!
//! Every parser returns `None` both for a missing field and for a reported one; the report has the problems.

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeTable, DeValue};

use super::problem::Report;
use crate::duration;
use crate::quoting::{plain, quoted};
use crate::suggest::nearest;

/// A table whose fields are being parsed.
pub(crate) struct Fields<'a, 'r, 'f> {
    table: &'a DeTable<'a>,
    /// Byte offset of the table.
    at: usize,
    /// The job that contains it.
    job: Option<&'a str>,
    /// The prefix of field names in a report: `retry.` and the like.
    prefix: &'static str,
    report: &'r mut Report<'f>,
}

impl<'a, 'r, 'f> Fields<'a, 'r, 'f> {
    /// Returns the fields of the whole file.
    pub(crate) fn of_file(table: &'a DeTable<'a>, report: &'r mut Report<'f>) -> Self {
        Self { table, at: 0, job: None, prefix: "", report }
    }

    /// Returns the fields of a job.
    pub(crate) fn of_job(table: &'a DeTable<'a>, at: usize, report: &'r mut Report<'f>) -> Self {
        let job = table.get("name").and_then(|name| name.get_ref().as_str());
        Self { table, at, job, prefix: "", report }
    }

    /// Returns the fields of a flow, or of a member of it, of this job.
    pub(crate) fn of_flow(
        table: &'a DeTable<'a>,
        at: usize,
        job: Option<&'a str>,
        report: &'r mut Report<'f>,
    ) -> Self {
        Self { table, at, job, prefix: "", report }
    }

    /// Returns the fields of the table `name`; `prefix` is `name` and a dot.
    pub(crate) fn inside(
        &mut self,
        name: &str,
        prefix: &'static str,
    ) -> Option<Fields<'a, '_, 'f>> {
        let value = self.table.get(name)?;
        let Some(table) = value.get_ref().as_table() else {
            self.problem(name, format!("must be a table, not {}", kind(value.get_ref())));
            return None;
        };
        let at = value.span().start;
        Some(Fields { table, at, job: self.job, prefix, report: self.report })
    }

    /// Reports a problem with field `name`, at its line or, if it is missing, at the table's.
    pub(crate) fn problem(&mut self, name: &str, message: impl Into<String>) {
        let at = self.table.get(name).map_or(self.at, |value| value.span().start);
        self.problem_at(at, name, message);
    }

    /// Reports a problem with a part of a field.
    pub(crate) fn problem_at(&mut self, at: usize, name: &str, message: impl Into<String>) {
        let field = format!("{}{name}", self.prefix);
        self.report.add(Some(at), self.job, Some(&field), message);
    }

    /// Returns the number of problems in the whole file so far.
    pub(crate) fn problems(&self) -> usize {
        self.report.count()
    }

    /// Returns whether the field exists, with any type.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.table.get(name).is_some()
    }

    /// Returns the field unparsed.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.get(name)
    }

    /// Yields the name, the position and the value of each field.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'a str, usize, &'a DeValue<'a>)> + use<'a> {
        let table = self.table;
        table.iter().map(|(key, value)| (key.get_ref().as_ref(), key.span().start, value.get_ref()))
    }

    /// Parses text that a database and a log line can hold.
    pub(crate) fn text(&mut self, name: &str, max_bytes: usize) -> Option<&'a str> {
        let value = self.table.get(name)?.get_ref();
        let Some(text) = value.as_str() else {
            self.problem(name, format!("must be text in quotes, not {}", kind(value)));
            return None;
        };
        match text_problem(text, max_bytes) {
            None => Some(text),
            Some(message) => {
                self.problem(name, message);
                None
            }
        }
    }

    /// Parses `true` or `false`.
    pub(crate) fn boolean(&mut self, name: &str) -> Option<bool> {
        let value = self.table.get(name)?.get_ref();
        let found = value.as_bool();
        if found.is_none() {
            self.problem(name, format!("must be true or false, not {}", kind(value)));
        }
        found
    }

    /// Parses a whole number.
    pub(crate) fn integer(&mut self, name: &str, range: RangeInclusive<i64>) -> Option<i64> {
        let value = self.table.get(name)?.get_ref();
        let Some(digits) = value.as_integer() else {
            self.problem(name, format!("must be a whole number, not {}", kind(value)));
            return None;
        };
        let number = integer(digits).filter(|number| range.contains(number));
        if number.is_none() {
            self.out_of_range(name, &plain(digits.as_str()), range.start(), range.end());
        }
        number
    }

    /// Parses a number, whole or not.
    pub(crate) fn number(&mut self, name: &str, range: RangeInclusive<f64>) -> Option<f64> {
        let value = self.table.get(name)?.get_ref();
        let number = match value {
            DeValue::Integer(digits) => integer(digits).map(|number| number as f64),
            DeValue::Float(digits) => float(digits),
            other => {
                self.problem(name, format!("must be a number, not {}", kind(other)));
                return None;
            }
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            self.problem(name, format!("is not between {} and {}", range.start(), range.end()));
        }
        number
    }

    /// Parses a duration such as `"1h30m"`.
    pub(crate) fn duration(
        &mut self,
        name: &str,
        range: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let value = self.table.get(name)?.get_ref();
        let Some(text) = value.as_str() else {
            let message = "must be a duration in quotes, such as \"30s\" or \"1h30m\"";
            self.problem(name, format!("{message}, not {}", kind(value)));
            return None;
        };
        match duration::parse(text) {
            Ok(duration) if range.contains(&duration) => Some(duration),
            Ok(duration) => {
                let [given, start, end] =
                    [duration, *range.start(), *range.end()].map(duration::format);
                self.out_of_range(name, &given, &start, &end);
                None
            }
            Err(error) => {
                self.problem(name, error.to_string());
                None
            }
        }
    }

    /// Parses one of a few words. `later` are words reserved for a later version.
    pub(crate) fn choice<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
        words: &[&str],
        later: &[&str],
    ) -> Option<T> {
        let text = self.text(name, usize::MAX)?;
        let chosen = parse(text);
        if chosen.is_none() {
            let state = if later.contains(&text) { "not supported yet" } else { "not known" };
            let words = words.join(", ");
            self.problem(name, format!("{} is {state}; write one of {words}", quoted(text)));
        }
        chosen
    }

    /// Reports every field that is not `known`. `later` are fields reserved for a later version, `hints` replacements
    /// for wrong words that are no misspellings.
    pub(crate) fn report_unknown_fields(
        &mut self,
        known: &[&str],
        later: &[&str],
        hints: &[(&str, &str)],
    ) {
        for (name, at, _) in self.all() {
            if known.contains(&name) {
                continue;
            }
            let hint = hints.iter().find(|(word, _)| *word == name);
            let message = if later.contains(&name) {
                "is not supported yet; remove it".to_owned()
            } else if let Some((_, hint)) = hint {
                format!("is not a field; {hint}")
            } else if let Some(suggestion) = nearest(name, known.iter().copied()) {
                format!("is not a field; did you mean \"{suggestion}\"?")
            } else {
                format!("is not a field; the fields are {}", known.join(", "))
            };
            self.problem_at(at, name, message);
        }
    }

    fn out_of_range(
        &mut self,
        name: &str,
        given: &dyn Display,
        start: &dyn Display,
        end: &dyn Display,
    ) {
        self.problem(name, format!("{given} is not between {start} and {end}"));
    }
}

/// Returns why a text is invalid.
pub(crate) fn text_problem(text: &str, max_bytes: usize) -> Option<String> {
    if text.contains('\0') {
        Some("holds a NUL character, which the database cannot keep".to_owned())
    } else if text.len() > max_bytes {
        Some(format!("has {} bytes; {max_bytes} at most", text.len()))
    } else {
        None
    }
}

/// Returns the number, if it fits 64 bits.
pub(crate) fn integer(digits: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(digits.as_str(), digits.radix()).ok()
}

/// Returns the number, if it is finite.
pub(crate) fn float(digits: &DeFloat<'_>) -> Option<f64> {
    digits.as_str().parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns a value's type, for people.
pub(crate) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Reports two tables of one name: the second at its line, with the line of the first. `what` they are, such as "job"; `place` of the second,
/// if that is not its name.
pub(crate) fn report_duplicate_name<'a>(
    table: &'a DeTable<'_>,
    what: &str,
    place: Option<&str>,
    report: &mut Report<'_>,
    lines: &mut HashMap<&'a str, usize>,
) {
    let Some(value) = table.get("name") else { return };
    let Some(name) = value.get_ref().as_str() else { return };
    let at = value.span().start;
    let line = report.line(at);
    if let Some(first) = lines.get(name) {
        let message = format!("this name is already used by the {what} in line {first}");
        report.add(Some(at), Some(place.unwrap_or(name)), Some("name"), message);
    } else {
        lines.insert(name, line);
    }
}
