//! The jobs file: deployers' job definitions, parsed and checked.
//!
//! # Guarantees
//!
//! * A [`JobSpec`] from here keeps every limit of the model and can be stored as it is.
//! * All problems of a file are reported at once, each with line, job and field. Syntax errors are the exception:
//!   after the first one the remaining text has no certain meaning.
//! * Nothing is ignored: an unknown or unsupported field is a problem.
//! * Text, number of jobs, nesting and number of problems are bounded, and no text makes it panic.
//!
//! # What it does not do
//!
//! Whether an instant is past or a cron expression ever fires depends on the time, so that is [`check_against`]. It
//! does not know which workers offer a task type.

mod check;
mod constraints;
mod cron_jobs;
pub(crate) mod expectations;
pub(crate) mod fields;
mod flow;
mod heartbeat;
pub(crate) mod job;
pub mod limits;
mod lock;
mod params;
pub(crate) mod problem;
mod retry;
mod schedule;
pub(crate) mod secret;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use toml::de::{DeTable, DeValue};

use crate::job::JobSpec;
use fields::{Fields, kind, report_duplicate_name};
use problem::Report;

pub use check::{check_against, check_with_timetables};
pub use cron_jobs::{CRON_JOBS, parse_cron_jobs};
pub use problem::{MAX_PROBLEMS, Problem};
pub use retry::RETRY_FIELDS;

/// Maximum length of a jobs file, in bytes.
pub const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of jobs in one file.
pub const MAX_JOBS: usize = 20_000;

/// Parses a jobs file in its order. `file_name` is only repeated in problems. A file without jobs is valid.
///
/// # Errors
///
/// Every problem of the file, in the order of its lines, up to [`MAX_PROBLEMS`]. Nothing of a file with a problem
/// should be applied: jobs of one file may belong together.
pub fn parse(file_name: &str, text: &str) -> Result<Vec<JobSpec>, Vec<Problem>> {
    if text.len() > MAX_FILE_BYTES {
        let mut report = Report::new(file_name, "");
        let bytes = text.len();
        let message = format!("the file has {bytes} bytes; {MAX_FILE_BYTES} at most");
        report.add(None, None, None, message);
        return Err(report.finish());
    }
    let mut report = Report::new(file_name, text);
    let jobs = match DeTable::parse(text) {
        Ok(document) => {
            let mut jobs = jobs(document.get_ref(), &mut report);
            flow::read_all(document.get_ref(), &mut jobs, &mut report);
            jobs
        }
        Err(error) => {
            let offset = error.span().map(|span| span.start.min(text.len()));
            let column = offset
                .map_or(String::new(), |offset| format!("column {}: ", report.column(offset)));
            report.add(offset, None, None, format!("{column}{}", error.message()));
            Vec::new()
        }
    };
    if report.count() == 0 { Ok(jobs) } else { Err(report.finish()) }
}

fn jobs(document: &DeTable<'_>, report: &mut Report<'_>) -> Vec<JobSpec> {
    Fields::of_file(document, report).report_unknown_fields(
        &["job", "flow"],
        &["group", "defaults"],
        &[],
    );
    let Some(value) = document.get("job") else { return Vec::new() };
    let Some(tables) = value.get_ref().as_array() else {
        let message = format!("is {}; write [[job]] before each job", kind(value.get_ref()));
        report.add(Some(value.span().start), None, Some("job"), message);
        return Vec::new();
    };
    if tables.len() > MAX_JOBS {
        let message = format!("the file has {} jobs; {MAX_JOBS} at most", tables.len());
        report.add(None, None, None, message);
        return Vec::new();
    }
    let mut lines = HashMap::new();
    let mut jobs = Vec::with_capacity(tables.len());
    for value in tables {
        let at = value.span().start;
        let DeValue::Table(table) = value.get_ref() else {
            let message = format!("is {}; write [[job]] before each job", kind(value.get_ref()));
            report.add(Some(at), None, Some("job"), message);
            continue;
        };
        report_duplicate_name(table, "job", None, report, &mut lines);
        jobs.extend(job::read(&mut Fields::of_job(table, at, report)));
    }
    jobs
}
