//! Links from document to document, and to headings.

use std::path::Path;

use super::{files, root, text, without_fences};

#[test]
fn every_relative_link_leads_somewhere() {
    let mut broken = Vec::new();
    let mut links = 0;
    for document in files(".md") {
        for target in targets(&text(&document)) {
            links += 1;
            if !leads_somewhere(&document, &target) {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
    assert!(links >= 50, "only {links} links were found");
}

#[test]
fn a_broken_link_is_reported() {
    let readme = Path::new("README.md");
    assert!(leads_somewhere(readme, "docs/reference/guarantees.md#firing"));
    assert!(!leads_somewhere(readme, "docs/reference/guarantees.md#fishing"));
    assert!(!leads_somewhere(readme, "docs/guarantee.md"));
    assert_eq!(slug("What a crash can do"), "what-a-crash-can-do");
    assert_eq!(slug("The lease, and who enforces it"), "the-lease-and-who-enforces-it");
    assert_eq!(slug("`DATABASE_URL`"), "database_url");
}

#[test]
fn every_document_can_be_reached_from_the_readme() {
    let mut reached = vec![Path::new("README.md").to_owned()];
    let mut at = 0;
    while at < reached.len() {
        let document = reached[at].clone();
        for target in targets(&text(&document)) {
            let path = target.split('#').next().unwrap_or_default();
            let file = beside(&document, path);
            if file.extension().is_some_and(|kind| kind == "md") && !reached.contains(&file) {
                reached.push(file);
            }
        }
        at += 1;
    }
    for document in files(".md") {
        assert!(reached.contains(&document), "nothing leads to {}", document.display());
    }
}

/// The targets of a document's relative links.
fn targets(document: &str) -> Vec<String> {
    let prose = without_fences(document);
    prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned())
        .filter(|target| !target.contains("://"))
        .collect()
}

pub(super) fn leads_somewhere(document: &Path, target: &str) -> bool {
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() { document.to_owned() } else { beside(document, path) };
    root().join(&file).exists()
        && (heading.is_empty()
            || without_fences(&text(&file))
                .lines()
                .filter(|line| line.starts_with('#'))
                .any(|line| slug(line.trim_start_matches('#').trim()) == heading))
}

/// `path`, as `document` writes it, from the root.
fn beside(document: &Path, path: &str) -> std::path::PathBuf {
    let mut parts: Vec<_> = document.parent().into_iter().flatten().collect();
    for part in Path::new(path) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.iter().collect()
}

/// A heading's anchor in a link.
pub(super) fn slug(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}
