//! Jobs from the environment: the JSON of `CRON_JOBS`.

use serde_json::{Map, Value, json};
use sexton_model::job::{JobSpec, Schedule};
use sexton_model::jobs_file::{CRON_JOBS, MAX_JOBS, MAX_PROBLEMS, parse_cron_jobs};

use crate::error_text;

const MAX_ERROR_BYTES: usize = 2_800;

pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for service in [None, Some("billing")] {
        match parse_cron_jobs(&text, service) {
            Ok(jobs) => {
                assert!(jobs.len() <= MAX_JOBS);
                assert!(jobs.iter().all(|job| job.name == job.task_type));
                if service.is_none() {
                    written_and_read_again(&jobs);
                }
            }
            Err(problems) => {
                assert!((1..=MAX_PROBLEMS + 1).contains(&problems.len()));
                for problem in problems {
                    error_text::check(&problem.to_string(), MAX_ERROR_BYTES);
                    assert_eq!(problem.file, CRON_JOBS);
                }
            }
        }
    }
}

fn written_and_read_again(jobs: &[JobSpec]) {
    let entries: Map<String, Value> = jobs
        .iter()
        .map(|job| {
            let Schedule::Cron { expression } = &job.schedule else {
                panic!("a schedule of another kind")
            };
            (
                job.name.clone(),
                json!({"schedule": expression, "days": job.days, "lockKey": job.lock_key}),
            )
        })
        .collect();
    assert_eq!(entries.len(), jobs.len(), "a name twice");
    let again = parse_cron_jobs(&Value::Object(entries).to_string(), None).expect("as written");
    let sorted = |jobs: &[JobSpec]| {
        let mut jobs = jobs.to_vec();
        jobs.sort_by(|a, b| a.name.cmp(&b.name));
        jobs
    };
    assert_eq!(sorted(&again), sorted(jobs));
}
