//! Jobs in zones: they fire by the clocks of theirs, and new data of the zones is noticed.

use chrono::{DateTime, Utc};
use sexton_model::cron::Dst;
use sexton_model::id::JobId;
use sexton_model::job::{JobSpec, Schedule};
use sexton_model::zone::{Zone, tz_data_version};
use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_scheduler::planner::Planner;
use sexton_scheduler::planner::cursors::Cursors;
use sexton_store::jobs::{self, Apply, Job};
use uuid::Uuid;

use super::Fixture;

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// Applies a job of Vienna at an instant.
async fn apply(f: &Fixture, expression: &str, dst: Dst, at: &str) {
    let schedule = Schedule::Cron { expression: expression.to_owned() };
    let timezone = Zone::parse("Europe/Vienna").unwrap();
    let spec = JobSpec { timezone, dst, ..JobSpec::new("a.b", "work", schedule) };
    let request = Apply { specs: &[spec], actor: "t", dry_run: false, prune: false };
    jobs::apply(f.db.store(), request, || JobId::new(Uuid::now_v7()), Some(instant(at)))
        .await
        .unwrap();
}

async fn job(f: &Fixture) -> Job {
    jobs::find(f.db.store(), "a.b").await.unwrap().unwrap()
}

/// Plans at each hour of two days, and answers what was claimed.
async fn fired(f: &Fixture, planner: &Planner, from: &str) -> Vec<String> {
    for half_hour in 0..=96 {
        let now = instant(from) + chrono::Duration::minutes(30 * half_hour);
        planner.run_once(Some(now)).await.unwrap();
    }
    sqlx::query_scalar("SELECT execution_key FROM sexton.executions ORDER BY scheduled_for")
        .fetch_all(f.db.pool())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_job_fires_by_the_clocks_of_its_zone_on_the_day_on_which_they_change() {
    for (expression, dst, from, expected) in [
        (
            "30 2 * * *",
            Dst::Vixie,
            "2026-03-28T00:00:00Z",
            &["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"][..],
        ),
        ("30 2 * * *", Dst::Skip, "2026-03-28T00:00:00Z", &["2026-03-28T01:30:00Z"]),
        (
            "30 2 * * *",
            Dst::Vixie,
            "2026-10-24T00:00:00Z",
            &["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z"],
        ),
        (
            "30 2 * * *",
            Dst::Wall,
            "2026-10-24T00:00:00Z",
            &["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"],
        ),
    ] {
        let f = Fixture::without_broker().await;
        apply(&f, expression, dst, from).await;
        let (planner, _dispatcher) = f.planner();
        let keys: Vec<String> = expected.iter().map(|at| format!("cron-{at}")).collect();
        assert_eq!(fired(&f, &planner, from).await, keys, "{expression} {dst:?} from {from}");
        let by: Vec<Option<String>> =
            sqlx::query_scalar("SELECT tz_version FROM sexton.executions")
                .fetch_all(f.db.pool())
                .await
                .unwrap();
        assert!(by.iter().all(|by| by.as_deref() == Some(tz_data_version())), "{by:?}");
        assert_eq!(f.number("SELECT count(*) FROM sexton.gaps").await, 0);
    }
}

#[tokio::test]
async fn a_cursor_is_the_first_firing_after_what_was_planned() {
    let f = Fixture::without_broker().await;
    apply(&f, "0 8 * * *", Dst::Vixie, "2026-01-01T00:00:00Z").await;
    let applied = job(&f).await;
    assert_eq!(applied.next_fire_at, Some(instant("2026-01-01T07:00:00Z")));
    assert_eq!(applied.planned_until, Some(instant("2026-01-01T00:00:00Z")));
    assert_eq!(applied.tz_version.as_deref(), Some(tz_data_version()));
    let (planner, _dispatcher) = f.planner();
    planner.run_once(Some(instant("2026-01-01T07:00:03Z"))).await.unwrap();
    let after = job(&f).await;
    assert_eq!(after.next_fire_at, Some(instant("2026-01-02T07:00:00Z")));
    assert_eq!(after.planned_until, Some(instant("2026-01-01T07:00:03Z")));
}

/// As if data that knew Vienna an hour off had computed it.
async fn by_older_data(f: &Fixture, next_fire_at: &str) {
    sqlx::query("UPDATE sexton.jobs SET tz_version = '2000a', next_fire_at = $1")
        .bind(instant(next_fire_at))
        .execute(f.db.pool())
        .await
        .unwrap();
}

#[tokio::test]
async fn new_time_zone_data_moves_a_cursor_once_and_logs_it() {
    let f = Fixture::without_broker().await;
    apply(&f, "0 8 * * *", Dst::Vixie, "2026-01-01T00:00:00Z").await;
    let cursors = Cursors::new(f.db.store().clone());
    assert_eq!(cursors.run_once(None).await.unwrap().outdated, 0, "its own data computed it");

    by_older_data(&f, "2026-01-01T08:00:00Z").await;
    let looked = Cursors::new(f.db.store().clone()).run_once(None).await.unwrap();
    let moved = &looked.moved[0];
    assert_eq!((looked.outdated, looked.moved.len()), (1, 1));
    assert_eq!((moved.name.as_str(), moved.timezone.as_str()), ("a.b", "Europe/Vienna"));
    assert_eq!(moved.by.as_deref(), Some("2000a"));
    assert_eq!(moved.from, instant("2026-01-01T08:00:00Z"));
    assert_eq!(moved.to, Some(instant("2026-01-01T07:00:00Z")));
    let now = job(&f).await;
    assert_eq!(now.next_fire_at, moved.to);
    assert_eq!(now.tz_version.as_deref(), Some(tz_data_version()));
    let again = Cursors::new(f.db.store().clone()).run_once(None).await.unwrap();
    assert_eq!((again.outdated, again.moved.len()), (0, 0));
}

#[tokio::test]
async fn older_correct_time_zone_data_moves_nothing() {
    let f = Fixture::without_broker().await;
    apply(&f, "0 8 * * *", Dst::Vixie, "2026-01-01T00:00:00Z").await;
    by_older_data(&f, "2026-01-01T07:00:00Z").await;
    let looked = Cursors::new(f.db.store().clone()).run_once(None).await.unwrap();
    assert_eq!((looked.outdated, looked.moved.len()), (1, 0));
    assert_eq!(job(&f).await.tz_version.as_deref(), Some(tz_data_version()));
}

#[tokio::test]
async fn cursors_of_newer_time_zone_data_and_utc_jobs_are_left_alone() {
    let f = Fixture::without_broker().await;
    apply(&f, "0 8 * * *", Dst::Vixie, "2026-01-01T00:00:00Z").await;
    for (version, zone) in [("2999z", "Europe/Vienna"), ("2000a", "UTC")] {
        sqlx::query("UPDATE sexton.jobs SET tz_version = $1, timezone = $2")
            .bind(version)
            .bind(zone)
            .execute(f.db.pool())
            .await
            .unwrap();
        let looked = Cursors::new(f.db.store().clone()).run_once(None).await.unwrap();
        assert_eq!(looked.outdated, 0, "{version} {zone}");
    }
}

#[tokio::test]
async fn a_due_job_is_claimed_by_the_newer_time_zone_data() {
    // The older data let it fire at 6:00Z, an hour too early; nothing must be claimed then.
    let f = Fixture::without_broker().await;
    apply(&f, "0 8 * * *", Dst::Vixie, "2026-01-01T00:00:00Z").await;
    by_older_data(&f, "2026-01-01T06:00:00Z").await;
    let (planner, _dispatcher) = f.planner();
    let early = planner.run_once(Some(instant("2026-01-01T06:00:00Z"))).await.unwrap();
    assert_eq!((early.claimed, early.known, early.skipped), (0, 0, 0));
    assert_eq!(job(&f).await.next_fire_at, Some(instant("2026-01-01T07:00:00Z")));
    let right = planner.run_once(Some(instant("2026-01-01T07:00:00Z"))).await.unwrap();
    assert_eq!(right.claimed, 1);
    assert_eq!(f.number("SELECT count(*) FROM sexton.executions").await, 1);
}

#[tokio::test]
async fn a_firing_moved_into_the_past_by_new_time_zone_data_is_late_and_not_lost() {
    let f = Fixture::without_broker().await;
    apply(&f, "0 8 * * *", Dst::Vixie, "2026-01-01T00:00:00Z").await;
    // The older data would have had it at 9:00Z; it is 7:40Z.
    by_older_data(&f, "2026-01-01T09:00:00Z").await;
    Cursors::new(f.db.store().clone()).run_once(None).await.unwrap();
    let (planner, _dispatcher) = f.planner();
    let report = planner.run_once(Some(instant("2026-01-01T07:40:00Z"))).await.unwrap();
    assert_eq!(report.claimed, 1, "late, and so the misfire policy's to judge");
    let key =
        "SELECT count(*) FROM sexton.executions WHERE execution_key = 'cron-2026-01-01T07:00:00Z'";
    assert_eq!(f.number(key).await, 1);
    assert_eq!(job(&f).await.next_fire_at, Some(instant("2026-01-02T07:00:00Z")));
}
