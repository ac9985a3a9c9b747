//! What both readers of other schedulers' files promise.

use std::path::Path;

use sexton_console::import::{
    ImportError, ImportOutcome, MAX_ENTRIES, MAX_LEFT_OUT, jobs_file, tasks_file,
};
use sexton_model::jobs_file::{MAX_FILE_BYTES, parse};
use sexton_worker::catalogue::Catalogue;

use crate::error_text;

/// A name and why, each cut and escaped.
const MAX_ERROR_BYTES: usize = 8_000;

/// Reads twice: the jobs file is the same, holds no character on which a terminal acts, and passes
/// the checker with every job that was read; what was left out has a line of the input.
pub(crate) fn check(text: &str, read: impl Fn() -> Result<ImportOutcome, ImportError>) {
    let imported = match read() {
        Ok(imported) => imported,
        Err(refused) => {
            error_text::check(&refused.to_string(), MAX_ERROR_BYTES);
            return;
        }
    };
    assert!(imported.entries.len() <= MAX_ENTRIES && imported.left_out.len() <= MAX_LEFT_OUT);
    let lines = text.matches(['\n', '\r']).count() + 1;
    for left in &imported.left_out {
        error_text::check(&left.to_string(), MAX_ERROR_BYTES);
        assert!(left.line.is_none_or(|line| (1..=lines).contains(&line)), "{left}");
    }
    let file = jobs_file(&imported, "made by a test", None);
    for line in file.lines().filter(|line| !line.is_empty()) {
        error_text::check(line, usize::MAX);
    }
    if file.len() <= MAX_FILE_BYTES {
        let jobs =
            parse("jobs.toml", &file).unwrap_or_else(|wrong| panic!("{wrong:#?} in\n{file}"));
        let jobs: Vec<_> = jobs.iter().map(|job| (&job.name, job.paused)).collect();
        let entries = imported.entries.iter().map(|entry| (&entry.name, entry.paused));
        let entries: Vec<_> = entries.collect();
        assert_eq!(jobs, entries);
    }
    check_catalogue(&imported);
    let again = read().expect("it was read before");
    assert_eq!(tasks_file(&imported, ""), tasks_file(&again, ""));
}

/// A worker reads the catalogue, on a host that has its programs, users and folders.
fn check_catalogue(imported: &ImportOutcome) {
    if imported.entries.is_empty() {
        return;
    }
    let text = tasks_file(imported, "made by a test");
    let read = Catalogue::parse(&text, Path::new("/bin"), Some("/bin".into()));
    let of_the_host = ["`user`", "`directory`", "`command`"];
    for problem in read.err().unwrap_or_default() {
        let message = problem.to_string();
        let known = of_the_host.iter().any(|field| message.contains(field))
            || message.contains("more problems");
        assert!(known, "{message} in\n{text}");
    }
}
