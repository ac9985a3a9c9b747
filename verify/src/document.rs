//! The parts of `docs/proof.md` that are written by the checker.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::explorer::{CheckedProperty, Counterexample, Graph, Keep, Model};
use crate::protocol::Protocol;
use crate::protocol::fences::Fence;
use crate::protocol::scenarios::mutant;

/// Where the document is.
pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/proof.md")
}

/// A shortest history that `fence` alone holds off.
pub fn counterexample(fence: Fence) -> Option<Box<Counterexample<Protocol>>> {
    Graph::explore(&mutant(fence).0, Keep::States).err()
}

/// The history as a numbered list.
pub fn trace(fence: Fence, found: &Counterexample<Protocol>) -> String {
    numbered(&mutant(fence).0.describe(&found.history))
}

/// The lines as a numbered list.
pub fn numbered(lines: &[String]) -> String {
    let numbered = lines.iter().enumerate().map(|(at, line)| format!("{}. {line}\n", at + 1));
    numbered.collect()
}

/// The table of fences and the history of each.
pub fn counterexamples() -> String {
    let mut table = vec!["| without | breaks |\n|---|---|\n".to_owned()];
    let mut traces = Vec::new();
    for fence in Fence::ALL {
        let title = fence.title();
        let link = title.replace(' ', "-");
        let (broken, steps) = counterexample(fence).map_or_else(
            || ("nothing", String::new()),
            |found| (found.property.sentence(), trace(fence, &found)),
        );
        table.push(format!("| [{title}](#without-{link}) | {broken} |\n"));
        traces.push(format!("\n### Without {title}\n\nBroken: {broken}.\n\n{steps}"));
    }
    table.concat() + &traces.concat()
}

/// What stands between `<!-- name -->` and `<!-- /name -->`.
pub fn block<'a>(document: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = document.split_once(&format!("<!-- {name} -->\n"))?;
    Some(rest.split_once(&format!("<!-- /{name} -->"))?.0)
}

/// Replaces a block of the document.
///
/// # Errors
///
/// If the file cannot be read or written, or lacks the block.
pub fn replace(name: &str, text: &str) -> io::Result<()> {
    let document = fs::read_to_string(path())?;
    let old = block(&document, name)
        .ok_or_else(|| io::Error::other(format!("docs/proof.md has no block {name}")))?;
    let new = format!("{}\n", text.trim_end());
    let marked = |inside: &str| format!("<!-- {name} -->\n{inside}<!-- /{name} -->");
    fs::write(path(), document.replace(&marked(old), &marked(&new)))
}
