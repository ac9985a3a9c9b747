//! The start: what is waited for, and what stops it.

use std::time::Duration;

use sexton_model::job::{JobSpec, Schedule};
use sexton_scheduler::start_up::cron_jobs;
use sexton_scheduler::start_up::{StartError, start_up};
use sexton_service::clock;
use sexton_service::health::Readiness;
use sexton_service::reachability::Reachability;
use sexton_tests::database::TestDatabase;
use sexton_tests::platform::Platform;
use sexton_tests::proxy::Proxy;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(20);

fn reachability() -> (Readiness, Reachability) {
    let readiness = Readiness::new();
    let database = Reachability::new(readiness.condition("database", clock::now()));
    (readiness, database)
}

async fn execute(db: &TestDatabase, statement: &'static str) {
    sqlx::query(statement).execute(db.pool()).await.unwrap();
}

#[tokio::test]
async fn a_schema_that_is_still_to_be_migrated_is_waited_for() {
    let db = TestDatabase::create().await.unwrap();
    let (readiness, database) = reachability();
    execute(&db, "ALTER TABLE sexton._sqlx_migrations RENAME TO not_yet").await;
    let mut starting = Box::pin(start_up(db.store(), &[], "test", &database));
    let early = timeout(Duration::from_millis(500), &mut starting).await;
    assert!(early.is_err(), "it waits: {early:?}");
    assert!(!readiness.is_ready());
    execute(&db, "ALTER TABLE sexton.not_yet RENAME TO _sqlx_migrations").await;
    timeout(DEADLINE, starting).await.expect("it goes on by itself").unwrap();
    assert!(readiness.is_ready());
}

#[tokio::test]
async fn jobs_of_the_environment_are_applied_once_however_often_it_starts() {
    let db = TestDatabase::create().await.unwrap();
    let (_, database) = reachability();
    let json = r#"{"cleanup": {"schedule": "*/5 * * * *", "lockKey": 1301}}"#;
    let jobs = cron_jobs::parse(Some(json), Some("billing")).unwrap();
    for _ in 0..2 {
        let starting = start_up(db.store(), &jobs, "test", &database);
        timeout(DEADLINE, starting).await.unwrap().unwrap();
    }
    let rows: Vec<(String, i32, i64)> =
        sqlx::query_as("SELECT name, revision, lock_key FROM sexton.jobs")
            .fetch_all(db.pool())
            .await
            .unwrap();
    assert_eq!(rows, [("billing.cleanup".to_owned(), 1, 1301)]);
}

#[tokio::test]
async fn a_job_of_the_environment_whose_day_fields_mean_two_things_is_logged_with_both() {
    let platform = Platform::new().await.unwrap();
    let jobs = r#"{"thirteenth": {"schedule": "0 0 13 * FRI"},
                   "stated": {"schedule": "0 0 13 * FRI", "days": "both"}}"#;
    let mut scheduler = platform.start_scheduler("s1", &[("CRON_JOBS", jobs)]).unwrap();
    scheduler.ready().await;
    let log = scheduler.log();
    for part in [
        "CRON_JOBS: job thirteenth: schedule: both day fields restrict the days",
        "a day fires that either selects (",
        "not only one that both select (Fri ",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert!(!log.contains("job stated"), "{log}");
    let days: Vec<Option<String>> =
        sqlx::query_scalar("SELECT days FROM sexton.jobs ORDER BY name")
            .fetch_all(platform.store().pool())
            .await
            .unwrap();
    assert_eq!(days, [Some("both".to_owned()), None]);
}

#[tokio::test]
async fn a_lock_key_of_another_service_stops_the_start_and_one_that_was_there_before_its_range_does_not()
 {
    let db = TestDatabase::create().await.unwrap();
    let (_, database) = reachability();
    let start = async |service: &str| {
        let json = r#"{"cleanup": {"schedule": "*/5 * * * *", "lockKey": 1301}}"#;
        let jobs = cron_jobs::parse(Some(json), Some(service)).unwrap();
        timeout(DEADLINE, start_up(db.store(), &jobs, "test", &database)).await.unwrap()
    };
    start("billing").await.unwrap();
    let range = "INSERT INTO sexton.lock_key_ranges (service, first_key, assigned_by, assigned_at)
        VALUES ('billing', 2000, 'test', now()), ('shop', 1300, 'test', now())";
    execute(&db, range).await;
    start("billing").await.unwrap();
    let error = start("shop").await.unwrap_err();
    assert!(matches!(error, StartError::Jobs(_)), "{error}");
    let text = error.to_string();
    let why = "job \"shop.cleanup\": lock_key: 1301 is the key of billing.cleanup";
    assert!(text.contains(why) && text.contains("the next free one is 1300"), "{text}");
}

#[tokio::test]
async fn jobs_that_never_fire_stop_the_start_and_are_all_named() {
    let db = TestDatabase::create().await.unwrap();
    let (_, database) = reachability();
    let job = |name: &str, expression: &str| {
        JobSpec::new(name, name, Schedule::Cron { expression: expression.to_owned() })
    };
    let jobs = [job("one", "0 0 30 2 *"), job("two", "0 0 31 4 *"), job("good", "0 8 * * *")];
    let starting = start_up(db.store(), &jobs, "test", &database);
    let error = timeout(DEADLINE, starting).await.unwrap().unwrap_err();
    assert!(matches!(error, StartError::Jobs(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("one") && text.contains("two") && !text.contains("good"), "{text}");
    let count: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sexton.jobs").fetch_one(db.pool()).await.unwrap();
    assert_eq!(count, 0, "nothing of it is applied");
}

#[tokio::test]
async fn a_scheduler_logs_that_it_waits_for_the_broker_and_when_it_starts_working() {
    let platform = Platform::new().await.unwrap();
    let proxy = Proxy::before(platform.amqp_url()).await.unwrap();
    proxy.cut();
    let url = proxy.url(platform.amqp_url());
    let mut scheduler = platform.start_scheduler("s1", &[("AMQP_URL", &url)]).unwrap();
    let waits = async || scheduler.log().contains("waits for the broker").then_some(());
    platform.eventually("it says what it waits for", DEADLINE, waits).await;
    assert!(!scheduler.log().contains("at work"), "{}", scheduler.log());
    proxy.pass();
    scheduler.ready().await;
    let count = || scheduler.log().matches("the scheduler is at work").count();
    let is_logged = async || (count() > 0).then_some(());
    platform.eventually("it says that it works", DEADLINE, is_logged).await;
    scheduler.terminate();
    assert!(scheduler.exit(DEADLINE).await.success());
    assert_eq!(scheduler.log().matches("the scheduler is at work").count(), 1);
}
