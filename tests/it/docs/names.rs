//! The tests and files that the documents name.

use std::fs;
use std::path::{Path, PathBuf};

use super::{code_spans, files, root, text};

/// The documents that name tests.
const DOCUMENTS_NAMING_TESTS: [&str; 3] =
    ["docs/reference/guarantee-tests.md", "docs/operations/servers.md", "tests/README.md"];

/// The first part of a test's path, and the folder of its modules.
const CRATES: [(&str, &str); 19] = [
    ("it", "tests/it"),
    ("servers", "tests/servers/tests"),
    ("sexton_broker", "shared/broker/src"),
    ("sexton_console", "console/src"),
    ("sexton_engine", "shared/engine/src"),
    ("sexton_guard", "guard/src"),
    ("sexton_hostile", "tests/hostile/src"),
    ("sexton_model", "shared/model/src"),
    ("sexton_operations", "shared/operations/src"),
    ("sexton_outbound", "shared/outbound/src"),
    ("sexton_peers", "tests/peers/src"),
    ("sexton_scheduler", "scheduler/src"),
    ("sexton_servers", "tests/servers/src"),
    ("sexton_server", "server/src"),
    ("sexton_service", "shared/service/src"),
    ("sexton_store", "shared/store/src"),
    ("sexton_tests", "tests/src"),
    ("sexton_verify", "verify/src"),
    ("sexton_worker", "worker/src"),
];

#[test]
fn every_test_that_a_document_names_exists() {
    let mut missing = Vec::new();
    let mut named = 0;
    for document in DOCUMENTS_NAMING_TESTS {
        for path in code_spans(&text(document)).into_iter().filter(|span| is_path(span)) {
            named += 1;
            if !exists(&path) {
                missing.push(format!("{document}: {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "no such tests:\n{}", missing.join("\n"));
    assert!(named >= 60, "only {named} names were found: are they still written as code?");
}

#[test]
fn a_missing_test_is_reported() {
    assert!(exists("it::docs::names::a_missing_test_is_reported"));
    assert!(exists("sexton_model::key::tests::a_template_is_filled_once"));
    // A property, a module of its own file, and a file without modules.
    assert!(exists("sexton_model::cron::tests::properties::arbitrary_text_never_panics"));
    for wrong in [
        "it::docs::names::there_is_no_such_test",
        "it::docs::links::a_missing_test_is_reported",
        "sexton_model::key::a_template_is_filled_once",
        "sexton_model::delays::tests::a_template_is_filled_once",
        // A function, but no test.
        "it::docs::names::exists",
        "nobody::a_template_is_filled_once",
    ] {
        assert!(!exists(wrong), "{wrong}");
    }
}

#[test]
fn every_file_that_a_document_names_exists() {
    let folders = ["deploy", "docs", "examples", "migrations", "shared", "scheduler", "worker"];
    let is_ours = |span: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        let first = span.split('/').next().unwrap_or_default();
        span.contains('/')
            && span.chars().all(plain)
            && !span.contains("NNNN")
            && (folders.contains(&first) || ["tests", "console"].contains(&first))
    };
    for document in files(".md") {
        for span in code_spans(&text(&document)).into_iter().filter(is_ours) {
            assert!(root().join(&span).exists(), "{}: no file {span}", document.display());
        }
    }
}

pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// Whether a code span is the path of a test: names joined by colons, three at least.
pub(super) fn is_path(span: &str) -> bool {
    span.split("::").count() >= 3 && span.split("::").all(is_name)
}

/// Whether `path` is a test: `<crate>::<modules>::<function>`.
pub(super) fn exists(path: &str) -> bool {
    let parts: Vec<&str> = path.split("::").collect();
    let [krate, modules @ .., name] = &parts[..] else { return false };
    let Some((_, folder)) = CRATES.iter().find(|(known, _)| known == krate) else { return false };
    // The module `tests` may be inside the file that it tests.
    (0..=modules.len()).any(|count| {
        let (of_files, inside) = modules.split_at(count);
        let outside = inside.is_empty();
        (outside || inside == ["tests"])
            && are_declared(Path::new(folder), of_files)
            && sources(Path::new(folder), of_files).iter().any(|file| {
                fs::read_to_string(root().join(file))
                    .is_ok_and(|source| has_test(&source, name, outside))
            })
    })
}

/// Whether each module is declared in the one above it: an undeclared file has no tests.
fn are_declared(folder: &Path, modules: &[&str]) -> bool {
    modules.iter().enumerate().all(|(depth, module)| {
        sources(folder, &modules[..depth]).iter().any(|file| {
            fs::read_to_string(root().join(file))
                .is_ok_and(|source| source.contains(&format!("mod {module};")))
        })
    })
}

/// The files in which the module may be.
fn sources(folder: &Path, modules: &[&str]) -> Vec<PathBuf> {
    let module: PathBuf = modules.iter().collect();
    if modules.is_empty() {
        let roots = ["lib.rs", "main.rs", "servers.rs"];
        return roots.iter().map(|root| folder.join(root)).collect();
    }
    vec![folder.join(&module).with_extension("rs"), folder.join(module).join("mod.rs")]
}

/// Whether `source` has a test of this name: outside any module, or inside one.
fn has_test(source: &str, name: &str, outside: bool) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    let module = lines.iter().position(|line| line.trim_end() == "mod tests {");
    lines.iter().enumerate().any(|(number, line)| {
        let declared = line.trim_start().trim_start_matches("async ");
        declared.strip_prefix("fn ").and_then(|rest| rest.strip_prefix(name)).is_some_and(|rest| {
            rest.starts_with('(')
                && module.is_some_and(|module| number > module) != outside
                && lines[..number]
                    .iter()
                    .rev()
                    .take_while(|line| line.trim_start().starts_with(['#', '/']))
                    .any(|line| line.contains("test]") || line.contains("tokio::test("))
        })
    })
}
