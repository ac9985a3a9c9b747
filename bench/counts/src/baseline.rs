//! What was recorded: a file in the repository, one line for each function.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::circumstances::Circumstances;

const HEAD: &str = "\
# Instructions for each call. Written by `make counts-record`, and compared by `make counts`; a commit that
# changes a number says why.
";

/// Counts, and under which circumstances.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Baseline {
    /// The circumstances.
    pub made: Circumstances,
    /// Instructions for each call, in the order of the cases.
    pub instructions: Vec<(String, u64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    made: Circumstances,
    case: Vec<Counted>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Counted {
    name: String,
    instructions: u64,
}

impl Baseline {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// It is not there, or not in the form.
    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file);
        let text =
            text.with_context(|| format!("{}: `make counts-record` writes it", file.display()))?;
        Self::parse(&text).with_context(|| {
            format!("{}: take it from the last commit, or `make counts-record`", file.display())
        })
    }

    fn parse(text: &str) -> Result<Self> {
        let Written { made, case } = toml::from_str(text)?;
        let instructions = case.into_iter().map(|case| (case.name, case.instructions)).collect();
        Ok(Self { made, instructions })
    }

    /// The file.
    pub fn to_text(&self) -> String {
        let mut text = HEAD.to_owned() + "\n[made]\n";
        // Writing to a String cannot fail.
        for (name, value) in self.made.named() {
            let _ = writeln!(text, "{name} = {value:?}");
        }
        for (name, count) in &self.instructions {
            let _ = writeln!(text, "\n[[case]]\nname = {name:?}\ninstructions = {count}");
        }
        text
    }

    /// What is recorded for a case.
    pub fn of(&self, name: &str) -> Option<u64> {
        self.instructions.iter().find(|(one, _)| one == name).map(|(_, count)| *count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases;

    const FILE: &str = include_str!("../baseline.toml");

    #[test]
    fn the_baseline_file_is_in_canonical_form() {
        assert_eq!(Baseline::parse(FILE).unwrap().to_text(), FILE);
    }

    #[test]
    fn every_case_is_recorded_and_nothing_else() {
        let recorded = Baseline::parse(FILE).unwrap();
        let recorded: Vec<_> =
            recorded.instructions.iter().map(|(name, _)| name.as_str()).collect();
        let cases: Vec<_> = cases::all().iter().map(|case| case.name).collect();
        assert_eq!(recorded, cases, "make counts-record");
    }
}
