//! Problems of the environment, in words for the person who corrects it.

use std::fmt;

/// Maximum number of characters of a value that a message repeats.
const MAX_SHOWN_CHARACTERS: usize = 60;

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    name: String,
    value: Option<String>,
    reason: String,
}

impl Problem {
    /// `value` is shown shortened; leave it out where it may be secret.
    pub(crate) fn new(name: &str, value: Option<&str>, reason: String) -> Self {
        Self { name: name.to_owned(), value: value.map(quote_shortened), reason }
    }

    /// Returns the variable.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the problem and the allowed values.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(value) = &self.value {
            write!(f, " = {value}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// All problems at once, so that a deployment is not corrected one restart at a time.
///
/// Displays as a headline and one line for each problem. Never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsErrors(Vec<Problem>);

impl SettingsErrors {
    pub(crate) fn new(problems: Vec<Problem>) -> Self {
        Self(problems)
    }

    /// Makes a problem that only the program itself can find, like params in `CRON_JOBS` that make no job. `value` is
    /// not shown.
    pub fn one(name: &str, reason: impl Into<String>) -> Self {
        Self(vec![Problem::new(name, None, reason.into())])
    }

    /// Joins both, `other`'s last: a program that parses a setting's value itself reports its problems together with
    /// the others.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Returns the problems, in the order of the settings table.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for SettingsErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => f.write_str("1 problem in the environment variables:")?,
            count => write!(f, "{count} problems in the environment variables:")?,
        }
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for SettingsErrors {}

/// Returns `text` in quotes, on one line, shortened if it is long.
pub(crate) fn quote_shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{:?}… ({} bytes)", &text[..end], text.len()),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_has_a_line_and_only_one() {
        let long = format!("first\nsecond{}", "ä".repeat(500));
        let errors = SettingsErrors::new(vec![
            Problem::new("A", Some(&long), "too long".to_owned()),
            Problem::new("B", None, "not set".to_owned()),
        ]);
        let shown = errors.to_string();
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines[0], "2 problems in the environment variables:");
        assert!(lines[1].starts_with("  A = \"first\\nsecondää"), "{}", lines[1]);
        assert!(lines[1].ends_with("… (1012 bytes): too long"), "{}", lines[1]);
        assert_eq!(lines[2], "  B: not set");
        assert_eq!(lines.len(), 3);
    }
}
