//! The jobs as the program and the environment name them together, checked as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use sexton_model::job::{self, Schedule as OfJob};
use sexton_model::jobs_file::parse_cron_jobs;

use super::error::InvalidCron;
use super::schedule::Timetable;
use super::work::Work;
use super::{Job, Lock};

/// Beyond it JavaScript rounds a number, so that two services would take different keys.
const MAX_KEY: i64 = (1 << 53) - 1;
/// Problems that are listed.
const MAX_PROBLEMS: usize = 100;

/// A job that can run.
#[derive(Clone, Debug)]
pub(super) struct ReadyJob {
    pub(super) name: Arc<str>,
    pub(super) timetable: Timetable,
    pub(super) lock: Lock,
    pub(super) work: Work,
}

/// What the environment changes of a job.
struct Change {
    timetable: Option<Timetable>,
    key: Option<i64>,
}

/// Applies the `value` of a `variable` to the jobs of the program.
pub(super) fn apply(
    jobs: Vec<Job>,
    variable: Option<&str>,
    value: Option<&str>,
) -> Result<Vec<ReadyJob>, InvalidCron> {
    let mut problems = Vec::new();
    let mut changes = match (variable, value) {
        (Some(variable), Some(value)) => read(&jobs, variable, value, &mut problems),
        _ => HashMap::new(),
    };
    let mut ready = Vec::new();
    // Also those that have another problem.
    let mut before: Vec<(String, Lock)> = Vec::new();
    for Job { name, schedule, lock, work } in jobs {
        let mut add = |field: &str, message: String| {
            problems.push(format!("job {:?}: {field}: {message}", shown(&name)));
        };
        if let Err(error) = job::check_name(&name) {
            add("name", error.to_string());
        }
        if before.iter().any(|(other, _)| *other == name) {
            add("name", "is there twice".to_owned());
        }
        let change = changes.remove(&*name).unwrap_or(Change { timetable: None, key: None });
        let timetable = match change.timetable {
            Some(timetable) => Some(timetable),
            None => schedule.timetable(&name).map_err(|(field, text)| add(field, text)).ok(),
        };
        let lock = match (lock, change.key) {
            (Lock::Advisory(_), Some(key)) => Lock::Advisory(key),
            (lock @ Lock::Row(_), Some(_)) => {
                add("lockKey", "is given, but the job's lock is a row; remove it".to_owned());
                lock
            }
            (lock, None) => lock,
        };
        if let Some(key) = lock.key()
            && key.unsigned_abs() > MAX_KEY.unsigned_abs()
        {
            let range = format!("must be from -{MAX_KEY} to {MAX_KEY}");
            add("lockKey", format!("{key} {range}: JavaScript rounds what is beyond"));
        }
        if let Some((other, _)) = before.iter().find(|(_, other)| other.is_same(&lock)) {
            let text = format!("{} is that of job {other:?} as well", lock.shown());
            add("lockKey", text);
        }
        before.push((name.clone(), lock.clone()));
        if let Some(timetable) = timetable {
            ready.push(ReadyJob { name: name.into(), timetable, lock, work });
        }
    }
    if problems.is_empty() {
        return Ok(ready);
    }
    let count = problems.len();
    if count > MAX_PROBLEMS {
        problems.truncate(MAX_PROBLEMS);
        problems.push(format!("and {} problems more", count - MAX_PROBLEMS));
    }
    Err(InvalidCron { problems })
}

/// Reads the variable.
fn read(
    jobs: &[Job],
    variable: &str,
    value: &str,
    problems: &mut Vec<String>,
) -> HashMap<String, Change> {
    let read = match parse_cron_jobs(value, None) {
        Ok(read) => read,
        Err(found) => {
            problems.extend(found.into_iter().map(|mut problem| {
                variable.clone_into(&mut problem.file);
                problem.to_string()
            }));
            return HashMap::new();
        }
    };
    let mut changes = HashMap::new();
    for job in read {
        let mut add = |field: &str, message: String| {
            problems.push(format!("{variable}: job {:?}: {field}: {message}", shown(&job.name)));
        };
        if !jobs.iter().any(|known| known.name == job.name) {
            let known: Vec<&str> = jobs.iter().map(|known| &*known.name).take(20).collect();
            add("name", format!("is not a job of this program; it has {}", known.join(", ")));
            continue;
        }
        let OfJob::Cron { expression } = &job.schedule else {
            add("schedule", "must be a cron expression".to_owned());
            continue;
        };
        match Timetable::read(expression, &job.name, job.days, job.timezone) {
            Ok(timetable) => {
                let change = Change { timetable: Some(timetable), key: job.lock_key };
                changes.insert(job.name, change);
            }
            Err((field, message)) => add(field, message),
        }
    }
    changes
}

/// A name in an error.
fn shown(name: &str) -> String {
    name.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::{DateTime, Utc};

    use super::*;
    use crate::lock_row::LockRow;

    fn job(name: &str, schedule: &str, lock: Lock) -> Job {
        let work = Work::new(async |_| Ok::<_, String>(()));
        Job { name: name.to_owned(), schedule: schedule.into(), lock, work }
    }

    fn jobs() -> Vec<Job> {
        let row = LockRow::new("report", Duration::from_mins(1)).unwrap();
        vec![
            job("cleanup", "0 */5 * * * *", Lock::advisory(5101)),
            job("report", "0 8 * * *", Lock::row(row)),
            job("sync", "* * * * *", Lock::advisory(5102)),
        ]
    }

    fn problems(jobs: Vec<Job>, value: &str) -> Vec<String> {
        apply(jobs, Some("JOBS"), Some(value)).unwrap_err().problems
    }

    #[test]
    fn the_environment_changes_schedules_and_keys_of_the_jobs_that_it_names() {
        let value = r#"{"sync": {"schedule": "0 0 9 13 * FRI", "days": "both", "lockKey": 7},
                        "report": {"schedule": "0 7 * * *"}}"#;
        let ready = apply(jobs(), Some("JOBS"), Some(value)).unwrap();
        let from: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
        let next: Vec<_> =
            ready.iter().map(|job| job.timetable.next_after(from).unwrap().to_rfc3339()).collect();
        let expected =
            ["2026-01-01T00:05:00+00:00", "2026-01-01T07:00:00+00:00", "2026-02-13T09:00:00+00:00"];
        assert_eq!(next, expected);
        assert_eq!(ready[2].lock.key(), Some(7));
        assert_eq!(ready[0].lock.key(), Some(5101));
        assert_eq!(apply(jobs(), Some("JOBS"), None).unwrap().len(), 3, "an unset variable");
        assert_eq!(apply(jobs(), None, None).unwrap().len(), 3);
    }

    #[test]
    fn all_problems_of_program_and_environment_are_named_at_once() {
        let mut wrong = jobs();
        wrong.push(job("sync", "0 0 30 2 *", Lock::advisory(5101)));
        wrong.push(job("", "* * * * *", Lock::advisory(1 << 53)));
        let row = LockRow::new("report", Duration::from_secs(9)).unwrap();
        wrong.push(job("again", "* * * * *", Lock::row(row)));
        wrong.push(job("friday", "0 0 13 * FRI", Lock::advisory(1)));
        let value = r#"{"report": {"schedule": "* * * * *", "lockKey": 8}, "reprot": {"schedule": "@daily"},
                        "cleanup": {"schedule": "0 0 13 * FRI"}}"#;
        let found = problems(wrong, value);
        for expected in [
            "JOBS: job \"reprot\": name: is not a job of this program; it has cleanup, report",
            "JOBS: job \"cleanup\": days: must be \"both\" or \"either\"",
            "job \"report\": lockKey: is given, but the job's lock is a row",
            "job \"sync\": name: is there twice",
            "job \"sync\": schedule: never fires",
            "job \"sync\": lockKey: 5101 is that of job \"cleanup\" as well",
            "job \"\": lockKey: 9007199254740992 must be from -9007199254740991",
            "job \"friday\": days: must be",
            "job \"again\": lockKey: the row \"report\" is that of job \"report\" as well",
        ] {
            assert!(found.iter().any(|it| it.starts_with(expected)), "{expected}: {found:#?}");
        }
    }

    #[test]
    fn what_is_no_list_of_jobs_is_refused_with_what_to_write() {
        for value in ["", "{", "[]", "{\"cleanup\": 5}", "{\"cleanup\": {\"schedule\": \"x\"}}"] {
            let found = problems(jobs(), value);
            assert!(found[0].starts_with("JOBS: "), "{found:?}");
        }
        let twice = r#"{"sync": {"schedule": "* * * * *"}, "sync": {"schedule": "* * * * *"}}"#;
        assert!(problems(jobs(), twice)[0].contains("is there twice"));
        let days = r#"{"sync": {"schedule": "0 0 13 * FRI", "days": "or"}}"#;
        let message = "days: \"or\" is not known; write one of both, either";
        assert!(problems(jobs(), days)[0].contains(message));
        let key = r#"{"sync": {"schedule": "* * * * *", "lockKey": 9223372036854775808}}"#;
        assert!(problems(jobs(), key)[0].contains("lockKey: must be a whole number"));
        let key = r#"{"sync": {"schedule": "* * * * *", "lockKey": 9007199254740993}}"#;
        assert!(problems(jobs(), key)[0].contains("JavaScript rounds"));
    }
}
