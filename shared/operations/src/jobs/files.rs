//! The jobs in jobs files, with their places.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sexton_model::job::JobSpec;
use sexton_model::jobs_file::{self, Problem};
use sexton_model::lint::DayMeanings;
use sexton_model::zone::Zone;

use crate::error::InvalidRequest;
use crate::params_schemas::JobMismatch;

/// The content of jobs files.
#[derive(Debug, Default)]
pub struct JobsFiles {
    /// The jobs, with distinct names.
    pub specs: Vec<JobSpec>,
    /// File and line of each job, for problems that are found later.
    places: HashMap<String, (String, Option<usize>)>,
}

/// A job whose expression has two meanings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AmbiguousDays {
    /// Its name.
    pub job: String,
    /// The zone of its schedule.
    pub zone: Zone,
    /// Both meanings.
    pub meanings: DayMeanings,
}

impl JobsFiles {
    /// Parses files, each given by its name and its text, and reports the problems of all of them.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::JobsFile`] with every problem and its place; also for a name that two files have.
    pub fn read(files: &[(String, String)]) -> Result<Self, InvalidRequest> {
        let mut all = Self::default();
        let mut problems = Vec::new();
        for (name, text) in files {
            match jobs_file::parse(name, text) {
                Ok(specs) => problems.extend(all.add(name, text, specs)),
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() { Ok(all) } else { Err(InvalidRequest::JobsFile(problems)) }
    }

    /// Adds one file's jobs; returns a problem for each that another file has too.
    fn add(&mut self, file: &str, text: &str, specs: Vec<JobSpec>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let lines = find_name_lines(text);
        for spec in specs {
            let line = lines.get(spec.name.as_str()).copied();
            if let Some((other, _)) = self.places.get(&spec.name) {
                problems.push(Problem {
                    file: file.to_owned(),
                    line,
                    job: Some(spec.name),
                    field: Some("name".to_owned()),
                    message: format!("this name is already used by a job in {other}"),
                    unlisted: 0,
                });
                continue;
            }
            self.places.insert(spec.name.clone(), (file.to_owned(), line));
            self.specs.push(spec);
        }
        problems
    }

    /// Returns a mismatch of a job's params as a problem with its place.
    pub fn mismatch_problem(&self, mismatch: &JobMismatch) -> Problem {
        self.locate(Problem {
            file: String::new(),
            line: None,
            job: Some(mismatch.job.clone()),
            field: Some("params".to_owned()),
            message: format!(
                "do not fit what a worker at work says of the task: {}",
                mismatch.describe()
            ),
            unlisted: 0,
        })
    }

    /// Returns the jobs whose expression has two meanings after `now`, because both day fields restrict the days and the
    /// job does not say `days`; in the order of the files.
    pub fn ambiguous_days(&self, now: DateTime<Utc>) -> Vec<AmbiguousDays> {
        let of_job = |spec: &JobSpec| {
            let meanings = DayMeanings::of_job(spec, now)?;
            Some(AmbiguousDays { job: spec.name.clone(), zone: spec.timezone, meanings })
        };
        self.specs.iter().filter_map(of_job).collect()
    }

    /// Returns such a job as a problem with its place.
    pub fn ambiguity_problem(&self, ambiguous: &AmbiguousDays) -> Problem {
        let AmbiguousDays { job, zone, meanings } = ambiguous;
        self.locate(Problem {
            file: String::new(),
            line: None,
            job: Some(job.clone()),
            field: Some("schedule".to_owned()),
            message: format!("{}; write {}", meanings.describe(*zone), meanings.instead()),
            unlisted: 0,
        })
    }

    /// Adds the job's file and line to a problem.
    pub(super) fn locate(&self, mut problem: Problem) -> Problem {
        if let Some((file, line)) = problem.job.as_ref().and_then(|job| self.places.get(job)) {
            (problem.file, problem.line) = (file.clone(), *line);
        }
        problem
    }
}

/// Returns the lines in which jobs are named, counted from 1. Enough to lead the reader there; names in an unusual
/// notation are missing.
pub fn find_name_lines(text: &str) -> HashMap<&str, usize> {
    let named = text.lines().enumerate().filter_map(|(index, line)| {
        let value = line.trim().strip_prefix("name")?.trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        Some((value[1..].split(quote).next()?, index + 1))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_its_line() {
        let text = "[[job]]\nname = \"a.b\"\n\n[[job]]\n  name='c.d' # there\nnames = \"e\"\n";
        assert_eq!(find_name_lines(text), HashMap::from([("a.b", 2), ("c.d", 5)]));
    }
}
