//! The table for people: a marked section of `bench/measured.md`.

use std::fmt::Write as _;

use anyhow::{Result, bail};

use crate::baseline::Baseline;
use crate::cases;

const OPENING: &str = "<!-- counts -->";
const CLOSING: &str = "<!-- /counts -->";

/// The page with the section anew, and all else as it was.
///
/// # Errors
///
/// The page has no such section.
pub fn with_section(page: &str, counts: &Baseline) -> Result<String> {
    let parts = page.split_once(OPENING).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(CLOSING)?;
        Some((before, after))
    });
    let Some((before, after)) = parts else {
        bail!("the page has no section between {OPENING} and {CLOSING}; put the two lines back");
    };
    Ok(format!("{before}{OPENING}\n{}{CLOSING}{after}", section(counts)))
}

fn section(counts: &Baseline) -> String {
    let mut text = "| function | done when | instructions |\n| --- | --- | ---: |\n".to_owned();
    for case in cases::all() {
        let count = counts.of(case.name).map_or_else(|| "–".to_owned(), with_commas);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} | {} | {count} |", case.name, case.when);
    }
    let made: Vec<_> = counts.made.named().map(|(name, value)| format!("{name} `{value}`")).into();
    let _ = writeln!(text, "\nCounted with {}.", made.join(", "));
    text
}

fn with_commas(number: u64) -> String {
    let (thousands, rest) = (number / 1_000, number % 1_000);
    if thousands == 0 { rest.to_string() } else { format!("{},{rest:03}", with_commas(thousands)) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_page_shows_the_recorded_counts() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let page = std::fs::read_to_string(root.join("bench/measured.md")).unwrap();
        let counts = Baseline::read(&root.join("bench/counts/baseline.toml")).unwrap();
        assert_eq!(with_section(&page, &counts).unwrap(), page, "make counts-record");
        assert!(with_section("# A page", &counts).is_err());
    }

    #[test]
    fn thousands_are_separated() {
        let told = [7, 1_004, 12_345_678].map(with_commas);
        assert_eq!(told, ["7", "1,004", "12,345,678"]);
    }
}
