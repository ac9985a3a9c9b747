//! Jobs from the environment: `CRON_JOBS`, a JSON object of `{"<name>": {"schedule": "<cron>", "days": "<both or
//! either>", "lockKey": <number>}}`.
//!
//! The short form of a jobs file, for a service that brings its own jobs: all other fields have their defaults, and
//! the task type is the job's name, including the service prefix, so that two services with a job `cleanup` do not
//! run each other's.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use chrono::DateTime;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::check;
use super::problem::{Problem, Report};
use super::{MAX_FILE_BYTES, MAX_JOBS};
use crate::cron::{DayRule, Dialect, Expression};
use crate::job::{JobSpec, Schedule, check_name, check_task_type};
use crate::quoting::{quoted, without_middle};
use crate::suggest::nearest;

/// The variable's name, which stands for the file's in problems.
pub const CRON_JOBS: &str = "CRON_JOBS";

const KNOWN_FIELDS: [&str; 3] = ["schedule", "days", "lockKey"];

/// Parses the jobs in the order in which they are written. `service`, if given, and a dot prefix each name.
///
/// # Errors
///
/// Every problem; only the first if it is not JSON of that shape.
pub fn parse_cron_jobs(json: &str, service: Option<&str>) -> Result<Vec<JobSpec>, Vec<Problem>> {
    let mut report = Report::new(CRON_JOBS, "");
    let mut jobs = Vec::new();
    match entries(json) {
        Err(message) => report.add(None, None, None, message),
        Ok(entries) => {
            let mut names = HashSet::new();
            for (name, fields) in entries {
                let name = match service {
                    None | Some("") => name,
                    Some(service) => format!("{service}.{name}"),
                };
                jobs.push(job(&name, &fields, &mut report));
                if !names.insert(name.clone()) {
                    problem(&mut report, &name, "name", "is there twice");
                }
            }
        }
    }
    if report.count() == 0 { Ok(jobs) } else { Err(report.finish()) }
}

fn entries(json: &str) -> Result<Vec<(String, Entries<Value>)>, String> {
    if json.len() > MAX_FILE_BYTES {
        return Err(format!("has {} bytes; {MAX_FILE_BYTES} at most", json.len()));
    }
    let Entries(entries) = serde_json::from_str::<Entries<Entries<Value>>>(json).map_err(|e| {
        let error = without_middle(&e.to_string());
        format!("must be JSON as in {{\"name\": {{\"schedule\": \"* * * * *\"}}}}: {error}")
    })?;
    if entries.len() > MAX_JOBS {
        return Err(format!("has {} jobs; {MAX_JOBS} at most", entries.len()));
    }
    Ok(entries)
}

/// Parses one job. After a problem, which the report has, the result must not be used.
fn job(name: &str, Entries(fields): &Entries<Value>, report: &mut Report<'_>) -> JobSpec {
    let mut job = JobSpec::new(name, name, Schedule::None);
    if let Err(error) = check_name(name) {
        problem(report, name, "name", error.to_string());
    } else if let Err(error) = check_task_type(name) {
        problem(report, name, "name", format!("{error}, as it is the task type too"));
    }
    // Before the schedule: whether that ever fires may depend on them.
    for (_, value) in fields.iter().filter(|(field, _)| field == "days") {
        match days(value) {
            Ok(days) => job.days = days,
            Err(message) => problem(report, name, "days", message),
        }
    }
    let mut seen = HashSet::new();
    for (field, value) in fields {
        if !seen.insert(field) {
            problem(report, name, field, "is there twice");
        }
        match field.as_str() {
            "schedule" => match cron(&job, value) {
                Ok(schedule) => job.schedule = schedule,
                Err(message) => problem(report, name, field, message),
            },
            "days" => {}
            "lockKey" => match value.as_i64() {
                Some(number) => job.lock_key = Some(number),
                None if value.is_null() => {}
                None => problem(report, name, field, "must be a whole number of at most 64 bits"),
            },
            other => problem(report, name, field, unknown(other)),
        }
    }
    if !seen.contains(&"schedule".to_owned()) {
        problem(report, name, "schedule", "is missing; write a cron expression");
    }
    job
}

fn days(value: &Value) -> Result<Option<DayRule>, String> {
    let words = DayRule::WORDS.join(", ");
    match value {
        Value::Null => Ok(None),
        Value::String(word) => match DayRule::parse(word) {
            None => Err(format!("{} is not known; write one of {words}", quoted(word))),
            rule => Ok(rule),
        },
        _ => Err(format!("must be one of {words}, in quotes")),
    }
}

fn cron(job: &JobSpec, value: &Value) -> Result<Schedule, String> {
    let text = value.as_str().ok_or("must be a cron expression in quotes")?;
    Expression::parse(text, Dialect::Any, &job.name).map_err(|error| error.to_string())?;
    let schedule = Schedule::Cron { expression: text.to_owned() };
    // An expression has no years: whether it ever fires is the same from every instant.
    let scheduled = JobSpec { schedule, ..job.clone() };
    match check::problem(&scheduled, DateTime::UNIX_EPOCH) {
        Some((_, message)) => Err(message),
        None => Ok(scheduled.schedule),
    }
}

fn unknown(field: &str) -> String {
    match nearest(field, KNOWN_FIELDS) {
        Some(suggestion) => format!("is not a field; did you mean {}?", quoted(suggestion)),
        None => {
            "is not a field here; a jobs file knows more than schedule, days and lockKey".to_owned()
        }
    }
}

fn problem(report: &mut Report<'_>, job: &str, field: &str, message: impl Into<String>) {
    report.add(None, Some(job), Some(field), message);
}

/// The entries of a JSON object in their order, including repeated names: a map would keep the last one and drop the
/// others silently.
struct Entries<V>(Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Entries<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for Pairs<V> {
            type Value = Entries<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Pairs(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(json: &str) -> Vec<String> {
        let problems = parse_cron_jobs(json, Some("billing")).unwrap_err();
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn jobs_of_the_environment_bear_the_service_and_run_a_task_of_their_name() {
        let json = r#"{"run": {"schedule": "0 1 1 * *", "lockKey": 1301},
                       "cleanup": {"schedule": "*/10 * * * * *", "lockKey": null, "days": null}}"#;
        let cron = |text: &str| Schedule::Cron { expression: text.to_owned() };
        let run = JobSpec::new("billing.run", "billing.run", cron("0 1 1 * *"));
        let cleanup = JobSpec::new("billing.cleanup", "billing.cleanup", cron("*/10 * * * * *"));
        let expected = vec![JobSpec { lock_key: Some(1301), ..run }, cleanup];
        assert_eq!(parse_cron_jobs(json, Some("billing")), Ok(expected));
        assert_eq!(parse_cron_jobs(json, Some("")).unwrap()[0].name, "run");
        assert_eq!(parse_cron_jobs(json, None).unwrap()[1].task_type, "cleanup");
        assert_eq!(parse_cron_jobs("{}", None), Ok(vec![]));
    }

    #[test]
    fn days_decide_when_a_job_of_the_environment_fires_wherever_they_stand() {
        for json in [
            r#"{"a": {"schedule": "0 0 13 * FRI", "days": "both"}}"#,
            r#"{"a": {"days": "both", "schedule": "0 0 13 * FRI"}}"#,
        ] {
            assert_eq!(parse_cron_jobs(json, None).unwrap()[0].days, Some(DayRule::Both));
        }
        // No February has a day that both fields select.
        let never = r#"{"a": {"schedule": "0 0 30 2 MON", "days": "both"}}"#;
        let found = problems(never);
        assert!(found[0].contains("never fires"), "{found:?}");
        assert!(parse_cron_jobs(&never.replace("both", "either"), None).is_ok());
        for (days, expected) in [
            (r#""or""#, "days: \"or\" is not known; write one of both, either"),
            ("1", "days: must be one of both, either, in quotes"),
        ] {
            let json = format!(r#"{{"a": {{"schedule": "@daily", "days": {days}}}}}"#);
            let found = problems(&json);
            assert_eq!(found, [format!("CRON_JOBS: job \"billing.a\": {expected}")]);
        }
    }

    #[test]
    fn all_problems_of_the_environment_are_reported_together() {
        let json = r#"{"a b": {"schedule": "0 1 1 * *"},
                       "run": {"lock_key": 1, "lockKey": 1.5, "colour": 1},
                       "run": {"schedule": "61 * * * *", "schedule": 5}}"#;
        let found = problems(json);
        for expected in [
            "CRON_JOBS: job \"billing.a b\": name: holds ' '",
            "CRON_JOBS: job \"billing.run\": lock_key: is not a field; did you mean \"lockKey\"?",
            "CRON_JOBS: job \"billing.run\": lockKey: must be a whole number",
            "CRON_JOBS: job \"billing.run\": colour: is not a field here",
            "CRON_JOBS: job \"billing.run\": schedule: is missing",
            "CRON_JOBS: job \"billing.run\": schedule: is there twice",
            "CRON_JOBS: job \"billing.run\": schedule: must be a cron expression",
            "CRON_JOBS: job \"billing.run\": name: is there twice",
        ] {
            assert!(
                found.iter().any(|problem| problem.starts_with(expected)),
                "{expected}: {found:#?}"
            );
        }
        assert_eq!(found.len(), 9, "the eight above and the minute: {found:#?}");
    }

    #[test]
    fn what_is_not_json_of_that_shape_says_what_to_write() {
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(100_000));
        for json in ["", "[]", "{\"a\": \"* * * * *\"}", "{", "null", &long] {
            let found = problems(json);
            assert_eq!(found.len(), 1);
            assert!(found[0].len() < 500, "{found:?}");
            assert!(found[0].starts_with("CRON_JOBS: must be JSON as in"), "{json}: {found:?}");
        }
    }
}
