//! A jobs file.

use chrono::DateTime;
use sexton_model::job::{JobSpec, MAX_PARAMS_BYTES, diff};
use sexton_model::jobs_file::{
    MAX_FILE_BYTES, MAX_JOBS, MAX_PROBLEMS, Problem, check_against, parse,
};

use crate::{error_text, shape, toml_text};

const FILE: &str = "jobs.toml";
/// Two texts of the input at their longest, escaped, and the words around them.
const MAX_ERROR_BYTES: usize = 2_800;
/// A job with three things wrong.
const WRONG: &str = "\n[[job]]\nname = \"a b\"\ntimeout = \"0s\"\n";
const WRONG_FIELDS: [&str; 3] = ["name", "task", "timeout"];

pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match parse(FILE, &text) {
        Ok(jobs) => {
            assert!(jobs.len() <= MAX_JOBS);
            jobs.iter().for_each(check_limits);
            written_and_read_again(&jobs);
            let late = check_against(&jobs, DateTime::UNIX_EPOCH);
            for problem in late {
                error_text::check(&problem.to_string(), MAX_ERROR_BYTES);
            }
        }
        Err(problems) => check_problems(&problems, &text),
    }
    all_at_once(&text);
}

fn check_limits(job: &JobSpec) {
    assert!(job.params.is_object());
    assert!(job.params.to_string().len() <= MAX_PARAMS_BYTES);
    shape::storable(&job.params);
    let texts = [&job.name, &job.task_type, &job.description].into_iter();
    let labels = job.labels.iter().flat_map(|(name, text)| [name, text]);
    for text in texts.chain(job.target.as_ref()).chain(labels) {
        assert!(!text.contains('\0'), "{text:?} cannot be stored");
    }
}

fn check_problems(problems: &[Problem], text: &str) {
    assert!((1..=MAX_PROBLEMS + 1).contains(&problems.len()));
    let lines = text.matches('\n').count() + 1;
    for problem in problems {
        error_text::check(&problem.to_string(), MAX_ERROR_BYTES);
        assert_eq!(problem.file, FILE);
        assert!(problem.line.is_none_or(|line| (1..=lines).contains(&line)), "{problem}");
    }
    let placed: Vec<_> = problems.iter().filter_map(|problem| problem.line).collect();
    assert!(placed.is_sorted(), "the problems are not in the order of the file");
}

/// Writing the jobs as a file again gives the same jobs.
fn written_and_read_again(jobs: &[JobSpec]) {
    let text = toml_text::jobs_file(jobs);
    if text.len() > MAX_FILE_BYTES {
        return;
    }
    let again = parse(FILE, &text).unwrap_or_else(|problems| panic!("{problems:#?} in\n{text}"));
    assert_eq!(again.len(), jobs.len());
    for (job, again) in jobs.iter().zip(&again) {
        assert_eq!(diff(job, again), [], "written as\n{text}");
    }
}

/// A wrong job at the end is reported, and hides no problem of the other jobs.
fn all_at_once(text: &str) {
    let before = parse(FILE, text).err().unwrap_or_default();
    let longer = format!("{text}{WRONG}");
    let Err(after) = parse(FILE, &longer) else { panic!("a wrong job was accepted") };
    // Without a syntax the rest has no meaning, and a full list has no room.
    let placed = |problem: &Problem| problem.job.is_some() || problem.field.is_some();
    if before.len() + 3 > MAX_PROBLEMS || !before.iter().all(placed) || !after.iter().all(placed) {
        return;
    }
    for problem in &before {
        assert!(after.contains(problem), "no longer reported: {problem}");
    }
    // Unless the table does not belong to the jobs, as where `job` is no list.
    let line = text.matches('\n').count() + 3;
    let is_reported = |field: &str| {
        after.iter().any(|problem| {
            problem.field.as_deref() == Some(field) && problem.line.is_some_and(|at| at + 1 >= line)
        })
    };
    if after.iter().any(|problem| problem.job.as_deref() == Some("a b")) {
        for field in WRONG_FIELDS {
            assert!(is_reported(field), "not reported: {field} of the last job in {after:#?}");
        }
    }
}
