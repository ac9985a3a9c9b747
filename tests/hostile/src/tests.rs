//! Goal: no input that was ever found hostile does harm again, and none of the seeds does. Method: each
//! file of each corpus goes through the same function as in the fuzzer. A file that fails is named.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use super::{TARGETS, target};

/// Fewer files are no corpus any more.
const MIN_FILES: usize = 20;

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn replay(name: &str) {
    let (run, folder) = (target(name).run, corpora().join(name));
    let files = names(&folder);
    assert!(files.len() >= MIN_FILES, "only {} files in {}", files.len(), folder.display());
    let harmful = |file: &&String| {
        let input = fs::read(folder.join(file)).unwrap();
        catch_unwind(move || run(&input)).is_err()
    };
    let harmful: Vec<_> = files.iter().filter(harmful).collect();
    assert!(harmful.is_empty(), "{harmful:#?} of fuzz/corpus/{name} break a promise, see above");
}

#[test]
fn every_message_body_of_the_corpus_passes() {
    replay("message");
}

#[test]
fn all_properties_of_the_corpus_pass() {
    replay("headers");
}

#[test]
fn every_cron_expression_of_the_corpus_passes() {
    replay("cron");
}

#[test]
fn every_jobs_file_of_the_corpus_passes() {
    replay("jobs_file");
}

#[test]
fn all_environment_jobs_of_the_corpus_pass() {
    replay("cron_jobs");
}

#[test]
fn every_crontab_of_the_corpus_passes() {
    replay("crontab");
}

#[test]
fn every_manifest_of_the_corpus_passes() {
    replay("manifest");
}

#[test]
fn every_catalogue_of_the_corpus_passes() {
    replay("catalogue");
}

#[test]
fn all_json_lines_of_the_corpus_pass() {
    replay("json_lines");
}

#[test]
fn all_output_of_the_corpus_passes() {
    replay("output");
}

#[test]
fn every_file_of_ranges_of_the_corpus_passes() {
    replay("ranges_file");
}

/// A corpus that no target reads, a target without a corpus or a test, a target that no fuzzer runs:
/// each would go unnoticed.
#[test]
fn targets_corpora_and_fuzzers_are_the_same() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(names(&corpora()), targets);
    let fuzzers = names(&corpora().join("../fuzz_targets"));
    assert_eq!(fuzzers, targets.iter().map(|name| format!("{name}.rs")).collect());
    let source = include_str!("tests.rs");
    for name in targets {
        assert!(source.contains(&format!("replay(\"{name}\")")), "no test replays {name}");
    }
}

#[test]
#[should_panic(expected = "is not escaped")]
fn an_escape_sequence_in_a_message_is_reported() {
    super::error_text::check("unknown key \u{1b}[2J", 100);
}
