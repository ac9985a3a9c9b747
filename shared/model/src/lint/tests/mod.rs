//! The rules about jobs.

mod expression;

use std::cell::Cell;
use std::time::Duration;

use super::{Code, MIN_RUNS, RunTimes, Severity, of_job, same_minute};
use crate::job::{JobSpec, Schedule};

fn now() -> chrono::DateTime<chrono::Utc> {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn cron(name: &str, text: &str) -> JobSpec {
    JobSpec::new(name, "t", Schedule::Cron { expression: text.to_owned() })
}

fn took(seconds: u64, runs: u32) -> RunTimes {
    RunTimes { runs, p95: Duration::from_secs(seconds) }
}

#[test]
fn a_job_that_is_due_again_before_it_usually_ends_is_a_finding() {
    let codes = |job: &JobSpec, times: Option<RunTimes>| {
        of_job(job, times, now()).iter().map(|finding| finding.code).collect::<Vec<_>>()
    };
    let quarter = cron("a.b", "*/15 * * * *");
    assert_eq!(codes(&quarter, Some(took(901, 20))), [Code::TooOften]);
    assert_eq!(codes(&quarter, Some(took(900, 20))), []);
    assert_eq!(codes(&quarter, Some(took(5_000, MIN_RUNS - 1))), [], "too few to say");
    assert_eq!(codes(&quarter, None), []);
    // The two closest firings count, not the usual distance.
    assert_eq!(codes(&cron("a.b", "0,5 3 * * *"), Some(took(301, 20))), [Code::TooOften]);
    let every = JobSpec::new("a.b", "t", Schedule::every(Duration::from_mins(1)));
    assert_eq!(codes(&every, Some(took(61, 20))), [Code::TooOften]);
    let none = JobSpec::new("a.b", "t", Schedule::None);
    assert_eq!(codes(&none, Some(took(61, 20))), []);
    let finding = &of_job(&quarter, Some(took(1_200, 20)), now())[0];
    assert!(
        finding.message.contains("every 15m") && finding.message.contains("up to 20m"),
        "{finding:?}"
    );
}

#[test]
fn an_expression_that_cannot_be_read_is_a_finding() {
    let found = of_job(&cron("a.b", "61 * * * *"), None, now());
    assert_eq!((found[0].code, found[0].severity), (Code::Unreadable, Severity::Error));
}

#[test]
fn many_jobs_in_one_minute_are_one_finding_and_those_with_h_are_none() {
    let named = |count: usize, text: &str| -> Vec<JobSpec> {
        (0..count)
            .map(|n| {
                cron(
                    &format!("{text}.{n:02}").replace(|c: char| !c.is_ascii_alphanumeric(), "_"),
                    text,
                )
            })
            .collect()
    };
    let found = |jobs: &[JobSpec], min_jobs| same_minute(jobs, min_jobs, now(), || true).unwrap();
    // Hourly: 24 full minutes, one finding.
    let hourly = found(&named(10, "@hourly"), 10);
    assert_eq!(hourly.len(), 1);
    assert!(
        hourly[0].1.message.starts_with("10 jobs are due in the minute of 2026-01-01T01:00:00Z")
    );
    assert!(hourly[0].1.message.ends_with("and 5 more"), "{}", hourly[0].1.message);
    assert_eq!(hourly[0].0, "_hourly_00");
    assert_eq!(found(&named(9, "@hourly"), 10), []);
    assert_eq!(found(&named(200, "H * * * *"), 10), []);
    // Two groups without a common minute are two findings; the fullest minute comes first.
    let groups = [named(12, "0 3 * * *"), named(30, "30 4 * * *")].concat();
    let both = found(&groups, 10);
    assert_eq!(both.len(), 2);
    assert!(both[0].1.message.starts_with("30 jobs"), "{}", both[0].1.message);
    // Seconds of one minute count as one job.
    assert_eq!(found(&[cron("a", "* * * * * *")], 2), []);
}

#[test]
fn without_the_time_for_all_jobs_none_are_found_in_one_minute() {
    let jobs = ["a", "b", "c"].map(|name| cron(name, "@hourly"));
    let found = |times: u32| {
        let left = Cell::new(times);
        let has_time = || left.replace(left.get().saturating_sub(1)) > 0;
        same_minute(&jobs, 2, now(), has_time).map(|found| found.len())
    };
    assert_eq!([3, 2, 0].map(found), [Some(1), None, None]);
}
