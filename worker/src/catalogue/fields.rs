//! Reads the keys of a table, and notes every problem with its place.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use sexton_model::{duration, size};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::Problems;

/// Collects the problems of one task type while its table is read.
pub(super) struct Notes<'p> {
    task: &'p str,
    problems: &'p mut Problems,
    is_valid: bool,
}

impl<'p> Notes<'p> {
    pub(super) fn new(task: &'p str, problems: &'p mut Problems) -> Self {
        Self { task, problems, is_valid: true }
    }

    /// Notes a problem at `span`, about the key `field`.
    pub(super) fn problem(
        &mut self,
        span: Option<Range<usize>>,
        field: Option<&str>,
        message: impl Into<String>,
    ) {
        self.is_valid = false;
        self.problems.add(span, Some(self.task), field, message);
    }

    /// Returns whether there is no problem so far.
    pub(super) fn is_valid(&self) -> bool {
        self.is_valid
    }
}

/// A table and its position: `[tasks.NAME]` itself, or one within it such as `http`.
#[derive(Clone, Copy)]
pub(super) struct Fields<'t> {
    table: &'t DeTable<'t>,
    /// The prefix of its keys in problems, as in `http.`; empty for the task's own table.
    prefix: &'static str,
}

impl<'t> Fields<'t> {
    pub(super) fn new(table: &'t DeTable<'t>, prefix: &'static str) -> Self {
        Self { table, prefix }
    }

    /// Returns the key's name in problems.
    pub(super) fn name(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub(super) fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.table.get(key)
    }

    /// Notes a problem with the value of `key`.
    pub(super) fn report(&self, key: &str, message: impl Into<String>, notes: &mut Notes<'_>) {
        let span = self.table.get(key).map(Spanned::span);
        notes.problem(span, Some(&self.name(key)), message);
    }

    /// Reads a duration within `allowed`.
    pub(super) fn span(
        &self,
        key: &str,
        allowed: RangeInclusive<Duration>,
        notes: &mut Notes<'_>,
    ) -> Option<Duration> {
        let value = self.get(key)?;
        let Some(text) = value.get_ref().as_str() else {
            let message = "must be a duration in quotes, such as \"45m\" or \"1h30m\"";
            self.report(key, message, notes);
            return None;
        };
        match duration::parse(text) {
            Ok(span) if allowed.contains(&span) => return Some(span),
            Ok(_) => {
                let (min, max) = (allowed.start(), allowed.end());
                let message =
                    format!("must be {} to {}", duration::format(*min), duration::format(*max));
                self.report(key, message, notes);
            }
            Err(error) => self.report(key, error.to_string(), notes),
        }
        None
    }

    /// Reads a text of 1 to `max_bytes` bytes.
    pub(super) fn text(
        &self,
        key: &str,
        max_bytes: usize,
        notes: &mut Notes<'_>,
    ) -> Option<&'t str> {
        match self.get(key)?.get_ref().as_str() {
            Some(text) if (1..=max_bytes).contains(&text.len()) => return Some(text),
            Some(_) => self.report(key, format!("must have 1 to {max_bytes} bytes"), notes),
            None => self.report(key, "must be a string", notes),
        }
        None
    }

    /// Reads a list of at most `max` texts, each with its position; skips entries that are not texts.
    pub(super) fn texts(
        &self,
        key: &str,
        max: usize,
        notes: &mut Notes<'_>,
    ) -> Vec<(Range<usize>, &'t str)> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array().filter(|array| array.len() <= max) else {
            self.report(key, format!("must be a list of at most {max} strings"), notes);
            return Vec::new();
        };
        let mut texts = Vec::with_capacity(array.len());
        for item in array {
            match item.get_ref().as_str() {
                Some(text) => texts.push((item.span(), text)),
                None => {
                    notes.problem(Some(item.span()), Some(&self.name(key)), "must be a string");
                }
            }
        }
        texts
    }

    /// Reads a number of bytes within `allowed`.
    pub(super) fn size(
        &self,
        key: &str,
        allowed: RangeInclusive<u64>,
        notes: &mut Notes<'_>,
    ) -> Option<u64> {
        let Some(text) = self.get(key)?.get_ref().as_str() else {
            self.report(key, "must be a size in quotes, such as \"64KiB\" or \"512MiB\"", notes);
            return None;
        };
        match size::parse(text) {
            Some(bytes) if allowed.contains(&bytes) => return Some(bytes),
            Some(_) => {
                let (min, max) = (size::format(*allowed.start()), size::format(*allowed.end()));
                self.report(key, format!("must be {min} to {max}"), notes);
            }
            None => {
                let message = "is no size: write a whole number and one of B, KiB, MiB and GiB, as in 200MiB or 200 MiB";
                self.report(key, message, notes);
            }
        }
        None
    }

    /// Reads a whole number within `allowed`.
    pub(super) fn number(
        &self,
        key: &str,
        allowed: RangeInclusive<i64>,
        notes: &mut Notes<'_>,
    ) -> Option<i64> {
        let found = match self.get(key)?.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let number = found.filter(|number| allowed.contains(number));
        if number.is_none() {
            let message = format!("must be a number, {} to {}", allowed.start(), allowed.end());
            self.report(key, message, notes);
        }
        number
    }

    /// Reads the table at `key`; problems name its keys after `prefix`.
    pub(super) fn table(
        &self,
        key: &str,
        prefix: &'static str,
        notes: &mut Notes<'_>,
    ) -> Option<Fields<'t>> {
        let table = self.get(key)?.get_ref().as_table();
        if table.is_none() {
            self.report(key, "must be a table", notes);
        }
        table.map(|table| Fields::new(table, prefix))
    }

    /// Returns the keys and values, sorted by key.
    pub(super) fn entries(
        &self,
    ) -> impl Iterator<Item = (&'t Spanned<Cow<'t, str>>, &'t Spanned<DeValue<'t>>)> + use<'t> {
        self.table.iter()
    }

    /// Notes every key that is not in `known`.
    pub(super) fn check_keys(&self, known: &[&str], notes: &mut Notes<'_>) {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let message = format!("unknown key; known are {}", listed(known));
                notes.problem(Some(key.span()), Some(&self.name(name)), message);
            }
        }
    }
}

/// Joins the words for a sentence.
fn listed(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match &quoted[..] {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
