//! The documents: what they name exists, where they point is something, and what they show is true.
//!
//! Read from the source tree. A document that has drifted from the code fails here, with the line to
//! correct; nothing is corrected by itself.

mod alerts;
mod arrows;
mod command_lines;
mod commands;
mod examples;
mod faults;
mod guarantees;
mod incidents;
mod limits;
mod links;
mod names;
mod operations;
mod reliability;
mod requests;
mod retention;
mod rust_tokens;
mod servers;
mod shape;
mod tutorial;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold nothing of ours.
const IGNORED_FOLDERS: [&str; 4] = [".git", ".sqlx", "node_modules", "target"];

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder inside the repository")
}

/// The text of a file of the repository.
pub(crate) fn text(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files whose names end with `ending`, as paths from the root, sorted.
pub(crate) fn files(ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder that can be read") {
            let path = entry.expect("a folder that can be read").path();
            let name =
                path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
            // A link into somewhere else is not ours to judge.
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                if !IGNORED_FOLDERS.contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if name.ends_with(ending) {
                found.push(path.strip_prefix(root()).expect("found below the root").to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The code spans of a document, fenced blocks left out.
fn code_spans(document: &str) -> Vec<String> {
    let prose = without_fences(document);
    prose.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The document with its fenced blocks taken out.
fn without_fences(document: &str) -> String {
    let mut fenced = false;
    let mut prose = String::new();
    for line in document.lines() {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if !fenced && !fence {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// The contents of the fenced blocks that begin with `` ```<info> ``.
pub(crate) fn blocks(document: &str, info: &str) -> Vec<String> {
    let opening = format!("```{info}");
    let mut found = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        if line.trim() == opening {
            let inside: Vec<_> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
            found.push(inside.join("\n"));
        }
    }
    found
}

/// What stands between `<!-- name -->` and `<!-- /name -->`.
pub(crate) fn between<'a>(document: &'a str, name: &str) -> &'a str {
    let (opening, closing) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let (_, rest) = document.split_once(&opening).unwrap_or_else(|| panic!("no {opening}"));
    rest.split_once(&closing).unwrap_or_else(|| panic!("no {closing}")).0
}
