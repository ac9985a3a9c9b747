use std::time::Duration;

use sexton_model::cron::Dst;
use sexton_model::job::{Schedule, ScheduleConstraints};
use sexton_model::zone::Zone;

use super::*;

const NOW: &str = "2026-01-01T10:24:30Z";

fn job(name: &str, schedule: &Schedule) -> CountedJob {
    let table = Timetable::new(name, schedule, Zone::UTC, Dst::default(), None).unwrap();
    CountedJob { name: name.to_owned(), table }
}

fn every(period_s: u64, phase_s: u64) -> Schedule {
    Schedule::Every { period: Duration::from_secs(period_s), phase: Duration::from_secs(phase_s) }
}

fn counted(jobs: Vec<CountedJob>) -> FiringDay {
    count_jobs(jobs, true, NOW.parse().unwrap())
}

#[test]
fn every_minute_of_the_clock_is_counted_once() {
    for (period_s, of_part) in [(60, 10), (10, 60)] {
        let day = counted(vec![job("a.b", &every(period_s, 0))]);
        assert_eq!(day.from.to_rfc3339(), "2026-01-01T10:20:00+00:00");
        assert_eq!(day.counts, [of_part; PARTS], "every {period_s} s");
        assert!(day.complete && day.hot.is_empty());
    }
}

#[test]
fn a_minute_of_this_part_that_is_over_is_the_next_day_s() {
    let jobs = (0..20).map(|at| job(&format!("n{at}"), &every(86_400, 37_320))).collect();
    let day = counted(jobs);
    let [hot] = day.hot.as_slice() else { panic!("{:?}", day.hot) };
    assert_eq!(hot.at.to_rfc3339(), "2026-01-02T10:22:00+00:00");
    assert_eq!((day.counts[0], hot.firings, hot.more_jobs), (20, 20, 18));
}

#[test]
fn a_hot_minute_names_jobs_and_its_share_of_the_day() {
    let mut jobs: Vec<CountedJob> =
        (0..25).map(|at| job(&format!("billing.n{at:02}"), &every(86_400, 3_600))).collect();
    jobs.push(job("hourly", &every(3_600, 0)));
    let day = counted(jobs);
    assert_eq!(day.total(), 49);
    let [hot] = day.hot.as_slice() else { panic!("{:?}", day.hot) };
    assert_eq!(hot.at.to_rfc3339(), "2026-01-02T01:00:00+00:00");
    assert_eq!((hot.firings, hot.percent), (26, 53));
    assert_eq!(hot.jobs, ["billing.n00", "billing.n01"]);
    assert_eq!(hot.more_jobs, 24);
    assert_eq!(day.all_hot, [hot.at]);
    let listed = day.list_part(hot.at);
    assert_eq!(listed.len(), 26);
    assert_eq!((listed[25].job.as_str(), listed[25].firings), ("hourly", 1));
    assert!(day.list_part(hot.at + minutes(PART_MINUTES)).is_empty());
}

#[test]
fn jitter_spreads_the_firings_of_a_minute() {
    let spread = ScheduleConstraints {
        jitter: Some(Duration::from_hours(2)),
        ..ScheduleConstraints::default()
    };
    let jobs = (0..100).map(|at| {
        let CountedJob { name, table } = job(&format!("n{at}"), &every(86_400, 3_600));
        CountedJob { table: table.with_constraints(&spread, &name), name }
    });
    let day = counted(jobs.collect());
    assert_eq!(day.total(), 100);
    assert!(day.hot.is_empty(), "{:?}", day.hot);
    let listed: usize = (0..PARTS).map(|part| day.list_part(day.begin(part)).len()).sum();
    assert_eq!(listed, 100);
}

#[test]
fn jobs_beyond_the_work_of_a_page_are_left_out_and_that_is_said() {
    let jobs = (0..MAX_JOBS).map(|at| job(&format!("n{at}"), &every(30, 0))).collect();
    let day = counted(jobs);
    assert!(!day.complete);
    assert_eq!(day.jobs(), MAX_STEPS.div_ceil(MINUTES + PART_MINUTES + 1));
}
