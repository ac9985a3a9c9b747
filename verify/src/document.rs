//! Writes the checker's documents: the numbers of `verify/numbers.md`, and a page of traces for each model.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::explorer::{CheckedProperty, Counterexample, Model, Mutant, Report, check};

/// The head of a table of [`row`]s.
pub const HEAD: &str = "| model | check | bounds | states | steps | longest shortest history | refused |\n\
                        |---|---|---|---|---|---|---|\n";

/// Returns a row of the tables of numbers.
pub fn row<M: Model>(model: &M, report: &Report) -> String {
    let Report { states, steps, depth, refused } = report;
    let [states, steps, refused] = [*states as u64, *steps, *refused].map(with_commas);
    format!(
        "| {} | {} | {} | {states} | {steps} | {depth} | {refused} |\n",
        M::NAME,
        model.check_name(),
        model.bounds_text(),
    )
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the path of the page with the numbers.
pub fn path() -> PathBuf {
    root().join("verify/numbers.md")
}

/// Returns the path of the page with the properties.
pub fn properties_path() -> PathBuf {
    root().join("docs/internals/proof.md")
}

/// Returns the path of a model's traces.
pub fn traces_path<M: Model>() -> PathBuf {
    root().join(format!("verify/traces/{}.md", M::NAME.replace(' ', "-")))
}

/// Returns the beginning of a page of traces: a table of the missing parts, and the properties that break.
pub fn traces_head<M: Model>(mutants: &[Mutant<M>]) -> String {
    let title = M::NAME[..1].to_uppercase() + &M::NAME[1..];
    let head = format!(
        "# {title}: what goes wrong without each fence\n\n\
         `cargo run -p sexton-verify -- --write` writes this page, and the tests of `verify` compare it. Each history is a \
         shortest one; [how to read it](../README.md#how-to-read-a-trace).\n\n\
         | missing | breaks |\n|---|---|\n"
    );
    let row = |Mutant { heading, breaks, .. }: &Mutant<M>| {
        let anchor = heading.to_lowercase().replace(' ', "-");
        format!("| [{heading}](#{anchor}) | {} |\n", breaks.sentence())
    };
    let rows: Vec<_> = mutants.iter().map(row).collect();
    head + &rows.concat()
}

/// Returns the section of a page of traces in which `mutant` breaks.
pub fn trace<M: Model>(mutant: &Mutant<M>, found: &Counterexample<M>) -> String {
    format!(
        "\n## {}\n\n{}\n\nBroken: {}.\n\n{}",
        mutant.heading,
        mutant.explanation,
        found.property.sentence(),
        numbered(&mutant.model.describe(&found.history))
    )
}

/// Formats the lines as a numbered list.
pub fn numbered(lines: &[String]) -> String {
    let numbered = lines.iter().enumerate().map(|(at, line)| format!("{}. {line}\n", at + 1));
    numbered.collect()
}

/// Writes the page of traces of a model.
///
/// # Errors
///
/// If a mutant breaks nothing, or the file cannot be written.
pub fn write_traces<M: Model>(mutants: &[Mutant<M>]) -> io::Result<()> {
    let mut page = traces_head(mutants);
    for mutant in mutants {
        let Err(found) = check(&mutant.model) else {
            return Err(io::Error::other(format!("{} breaks nothing", mutant.heading)));
        };
        page += &trace(mutant, &found);
    }
    fs::write(traces_path::<M>(), page)
}

/// Returns the text between `<!-- name -->` and `<!-- /name -->`.
pub fn block<'a>(document: &'a str, name: &str) -> Option<&'a str> {
    let (_, body) = document.split_once(&format!("<!-- {name} -->\n"))?;
    Some(body.split_once(&format!("<!-- /{name} -->"))?.0)
}

/// Replaces a block of the page with the numbers.
///
/// # Errors
///
/// If the file cannot be read or written, or lacks the block.
pub fn replace(name: &str, text: &str) -> io::Result<()> {
    let document = fs::read_to_string(path())?;
    let old = block(&document, name)
        .ok_or_else(|| io::Error::other(format!("verify/numbers.md has no block {name}")))?;
    let marked = |inside: &str| format!("<!-- {name} -->\n{inside}<!-- /{name} -->");
    fs::write(path(), document.replace(&marked(old), &marked(text)))
}
