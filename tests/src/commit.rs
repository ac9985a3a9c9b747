//! The commit of the code under test, for the record of a run.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::process::Command;

/// The commit that this was built from, with a mark if files have changed since; `None` without a repository.
pub fn describe() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    Some(match changes() {
        Some(changes) => {
            let mut hasher = DefaultHasher::new();
            changes.hash(&mut hasher);
            format!("{commit} with changes {:016x}", hasher.finish())
        }
        None => commit,
    })
}

/// The difference from the commit, without documents; `None` if there is none, or no repository.
pub fn changes() -> Option<String> {
    // From the root, whatever folder this runs in.
    let but_documents = ["--", ":(top)", ":(top,exclude)docs", ":(top,exclude,glob)**/*.md"];
    let changed = git(&[&["diff", "HEAD"][..], &but_documents].concat())?;
    let new = ["ls-files", "--others", "--exclude-standard", "--full-name"];
    let new = git(&[&new[..], &but_documents].concat())?;
    let all = format!("{changed}{new}");
    (!all.is_empty()).then_some(all)
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
