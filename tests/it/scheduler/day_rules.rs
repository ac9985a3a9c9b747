//! Jobs whose two day fields both restrict the days: what they say about them decides when they fire, whichever way
//! a scheduler reads them.

use chrono::{DateTime, Duration, Utc};
use sexton_model::cron::DayRule;
use sexton_model::id::JobId;
use sexton_model::job::{JobSpec, Schedule};
use sexton_model::zone::Zone;
use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_scheduler::planner::cursors::Cursors;
use sexton_store::firing;
use sexton_store::gaps::list_by_job;
use sexton_store::jobs::{self, Apply, Job};
use uuid::Uuid;

use super::Fixture;

const BOTH: Option<DayRule> = Some(DayRule::Both);
const EITHER: Option<DayRule> = Some(DayRule::Either);

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn spec(name: &str, expression: &str, days: Option<DayRule>) -> JobSpec {
    let schedule = Schedule::Cron { expression: expression.to_owned() };
    JobSpec { days, ..JobSpec::new(name, "work", schedule) }
}

async fn apply(f: &Fixture, specs: &[JobSpec], at: &str) {
    let request = Apply { specs, actor: "t", dry_run: false, prune: false };
    let fresh = || JobId::new(Uuid::now_v7());
    jobs::apply(f.db.store(), request, fresh, Some(instant(at))).await.unwrap();
}

async fn job(f: &Fixture, name: &str) -> Job {
    jobs::find(f.db.store(), name).await.unwrap().unwrap()
}

/// The days of February 2026 of which a job has an execution. The 1st is a Sunday.
async fn days_claimed(f: &Fixture, name: &str) -> Vec<i32> {
    sqlx::query_scalar(
        "SELECT extract(day FROM e.scheduled_for AT TIME ZONE 'UTC')::int FROM sexton.executions e
         JOIN sexton.jobs j ON j.id = e.job_id WHERE j.name = $1 ORDER BY e.scheduled_for",
    )
    .bind(name)
    .fetch_all(f.db.pool())
    .await
    .unwrap()
}

#[tokio::test]
async fn a_job_fires_on_days_that_both_or_either_of_its_day_fields_select_as_it_says() {
    let f = Fixture::without_broker().await;
    let jobs = [
        // The first two share text and zone, and so must not share a timetable.
        ("friday.both", "0 0 13 * FRI", BOTH, &[13][..]),
        ("friday.either", "0 0 13 * FRI", EITHER, &[6, 13, 20, 27]),
        ("friday.cron", "0 0 13 * FRI", None, &[6, 13, 20, 27]),
        ("odd.both", "0 0 */14 * MON", BOTH, &[]),
        ("odd.either", "0 0 */14 * MON", EITHER, &[2, 9, 15, 16, 23]),
        ("odd.cron", "0 0 */14 * MON", None, &[]),
        ("plain.both", "0 0 * * TUE", BOTH, &[3, 10, 17, 24]),
        ("plain.either", "0 0 * * TUE", EITHER, &[3, 10, 17, 24]),
        ("six.both", "0 0 0 1-7 * WED", BOTH, &[4]),
    ];
    let specs = jobs.map(|(name, expression, days, _)| spec(name, expression, days));
    apply(&f, &specs, "2026-02-01T00:00:00Z").await;
    let (planner, _dispatcher) = f.planner();
    for day in 1..28 {
        let now = instant("2026-02-01T00:00:00Z") + Duration::days(day);
        planner.run_once(Some(now)).await.unwrap();
    }
    for (name, expression, days, expected) in jobs {
        assert_eq!(days_claimed(&f, name).await, expected, "{expression} {days:?}");
    }
    assert_eq!(f.number("SELECT count(*) FROM sexton.gaps").await, 0);
}

#[tokio::test]
async fn other_days_are_another_schedule_as_another_expression_is() {
    let f = Fixture::without_broker().await;
    apply(&f, &[spec("a.b", "0 0 13 * FRI", EITHER)], "2026-02-01T00:00:00Z").await;
    assert_eq!(job(&f, "a.b").await.next_fire_at, Some(instant("2026-02-06T00:00:00Z")));
    // What was due by then and not claimed is a gap; the first firing is one of the new days.
    apply(&f, &[spec("a.b", "0 0 13 * FRI", BOTH)], "2026-02-07T00:00:00Z").await;
    let changed = job(&f, "a.b").await;
    assert_eq!((changed.revision, changed.days.as_deref()), (2, Some("both")));
    assert_eq!(changed.next_fire_at, Some(instant("2026-02-13T00:00:00Z")));
    let gaps = list_by_job(f.db.store(), changed.id, 10).await.unwrap();
    let gap = &gaps[0];
    assert_eq!((gaps.len(), gap.count, gap.reason.as_str()), (1, 1, "rescheduled"));
    assert_eq!(gap.first_firing, instant("2026-02-06T00:00:00Z"));
    // The same again changes nothing; without the field it is cron's meaning.
    apply(&f, &[spec("a.b", "0 0 13 * FRI", BOTH)], "2026-02-07T00:00:00Z").await;
    assert_eq!(job(&f, "a.b").await.revision, 2);
    apply(&f, &[spec("a.b", "0 0 13 * FRI", None)], "2026-02-14T00:00:00Z").await;
    let silent = job(&f, "a.b").await;
    assert_eq!((silent.revision, silent.days), (3, None));
    assert_eq!(silent.next_fire_at, Some(instant("2026-02-20T00:00:00Z")));
}

#[tokio::test]
async fn newer_time_zone_data_computes_a_cursor_on_the_days_that_the_job_says() {
    let f = Fixture::without_broker().await;
    let timezone = Zone::parse("Europe/Vienna").unwrap();
    let job_of_vienna = JobSpec { timezone, ..spec("a.b", "0 8 13 * FRI", BOTH) };
    apply(&f, &[job_of_vienna], "2026-02-01T00:00:00Z").await;
    sqlx::query("UPDATE sexton.jobs SET tz_version = '2000a', next_fire_at = $1")
        .bind(instant("2026-02-13T08:00:00Z"))
        .execute(f.db.pool())
        .await
        .unwrap();
    let moved = Cursors::new(f.db.store().clone()).run_once(None).await.unwrap().moved;
    assert_eq!(moved[0].to, Some(instant("2026-02-13T07:00:00Z")));
}

#[tokio::test]
async fn late_firings_are_listed_on_the_days_that_the_job_says() {
    let f = Fixture::without_broker().await;
    let jobs = [spec("a.both", "0 0 13 * FRI", BOTH), spec("a.either", "0 0 13 * FRI", EITHER)];
    apply(&f, &jobs, "2026-02-01T00:00:00Z").await;
    let now = instant("2026-02-28T00:00:00Z");
    let due = firing::list_due_now(f.db.store(), None, 10, Some(now)).await.unwrap().jobs;
    let counts: Vec<u64> = due
        .iter()
        .map(|job| job.timetable().unwrap().count(instant("2026-02-01T00:00:00Z"), now))
        .collect();
    assert_eq!(counts, [1, 4]);
}

#[tokio::test]
async fn a_row_whose_days_this_version_does_not_know_is_reported_and_stops_no_other() {
    let f = Fixture::without_broker().await;
    let jobs = [spec("a.later", "0 0 13 * FRI", BOTH), spec("a.now", "0 0 13 * FRI", EITHER)];
    apply(&f, &jobs, "2026-02-01T00:00:00Z").await;
    for statement in [
        "ALTER TABLE sexton.jobs DROP CONSTRAINT jobs_days_check",
        "UPDATE sexton.jobs SET days = 'neither' WHERE name = 'a.later'",
    ] {
        sqlx::query(statement).execute(f.db.pool()).await.unwrap();
    }
    let (planner, _dispatcher) = f.planner();
    let report = planner.run_once(Some(instant("2026-02-13T00:00:00Z"))).await.unwrap();
    assert_eq!((report.claimed, report.quarantined), (1, 1));
    assert_eq!(days_claimed(&f, "a.now").await, [13]);
}
