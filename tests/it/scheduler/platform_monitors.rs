//! Monitors of the platform: what lasts opens an incident, what is over resolves it.

use sexton_model::state::State;
use sexton_scheduler::alerts::platform_monitors::{PlatformMonitors, PlatformMonitorsReport};
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_service::settings::ConsoleSettings;
use sexton_store::incidents::{IncidentFilter, list};
use sexton_tests::factory::{NewExecution, NewJob};
use sexton_tests::namespace::amqp_url;

use super::{Fixture, now};

async fn judge(f: &Fixture, seconds: i64) -> PlatformMonitorsReport {
    let namespace = f.namespace.namespace().to_string();
    let variables = [
        ("DATABASE_URL", f.db.url().to_owned()),
        ("AMQP_URL", amqp_url()),
        ("SEXTON_NAMESPACE", namespace),
        ("FAILED_WARN_COUNT", "1".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    let settings = ConsoleSettings::from_env(variables).unwrap();
    PlatformMonitors::new(f.store(), settings).run_once(now(seconds)).await.unwrap()
}

/// `subject cause severity` of the open incidents.
async fn open(f: &Fixture) -> Vec<String> {
    let incidents = list(f.db.store(), &IncidentFilter::default(), 100).await.unwrap();
    let mut lines: Vec<String> = incidents
        .into_iter()
        .map(|one| format!("{} {} {}", one.subject, one.cause, one.severity))
        .collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn what_lasts_for_two_judgements_opens_an_incident_and_its_end_resolves_it() {
    let f = Fixture::new().await;
    let job = f.job(NewJob::new("a.b")).await;
    // Due for an hour by the server's clock, which the doctor reads.
    let hour_ago = sexton_service::clock::now() - chrono::TimeDelta::hours(1);
    f.insert(NewExecution::new(job, State::Pending, hour_ago)).await;
    for _ in 0..2 {
        f.insert(NewExecution::new(job, State::Failed, hour_ago)).await;
    }
    let first = judge(&f, 0).await;
    assert_eq!((first.opened, open(&f).await), (0, Vec::<String>::new()), "{first:?}");
    assert_eq!(judge(&f, 30).await.opened, 0, "it may be over soon");
    judge(&f, 60).await;
    let expected = [
        "failed_queue_too_deep failed_queue_too_deep medium",
        "no_scheduler no_scheduler high",
        "pool_without_workers:default pool_without_workers high",
        "tickets_unpublished tickets_unpublished high",
    ];
    let found = open(&f).await;
    assert!(expected.iter().all(|line| found.contains(&(*line).to_owned())), "{found:?}");
    assert_eq!(judge(&f, 120).await.opened, 0, "each opens once");

    let scheduler = "INSERT INTO sexton.instances (id, kind, name, pid, version, started_at, heartbeat_at, ready)
                     VALUES (gen_random_uuid(), 'scheduler', 's1', 1, '0', now(), now(), true)";
    sqlx::query(scheduler).execute(f.db.pool()).await.unwrap();
    assert_eq!(judge(&f, 180).await.resolved, 1);
    let left = open(&f).await;
    assert!(!left.iter().any(|line| line.starts_with("no_scheduler")), "{left:?}");
    assert_eq!(left.len(), found.len() - 1);
}

#[tokio::test]
async fn heartbeats_that_do_not_arrive_are_one_incident_until_a_later_one_arrives() {
    let f = Fixture::new().await;
    f.job(NewJob::new("a.b")).await;
    let sql = async |statement: &'static str| {
        sqlx::query(statement).execute(f.db.pool()).await.unwrap();
    };
    sql("UPDATE sexton.jobs SET heartbeat = '{\"url\": \"https://hc.example/a\", \"on\": [\"success\"]}'").await;
    // The job's heartbeats were tried in vain for twelve minutes.
    sqlx::query(
        "INSERT INTO sexton.heartbeats (job_id, execution_id, attempt, event, address, created_at, due_at, tries, last_error)
         SELECT id, gen_random_uuid(), 1, 'success', 'https://hc.example', $1::timestamptz - interval '12 minutes', $1, 3, 'no route'
         FROM sexton.jobs, generate_series(1, 2)",
    )
    .bind(now(0))
    .execute(f.db.pool())
    .await
    .unwrap();
    judge(&f, 0).await;
    judge(&f, 60).await;
    let line = "heartbeats_undelivered heartbeats_undelivered medium".to_owned();
    assert!(open(&f).await.contains(&line));
    let detail: String = sqlx::query_scalar(
        "SELECT detail FROM sexton.incidents WHERE cause = 'heartbeats_undelivered'",
    )
    .fetch_one(f.db.pool())
    .await
    .unwrap();
    assert!(
        detail.contains("a.b, to https://hc.example") && detail.contains("no route"),
        "{detail}"
    );
    sql("UPDATE sexton.heartbeats SET state = 'sent', finished_at = now() WHERE id = (SELECT max(id) FROM sexton.heartbeats)").await;
    judge(&f, 120).await;
    assert!(!open(&f).await.contains(&line));
}

#[tokio::test]
async fn the_incident_of_heartbeats_that_were_given_up_ends_a_day_later() {
    let f = Fixture::new().await;
    f.job(NewJob::new("a.b")).await;
    sqlx::query("UPDATE sexton.jobs SET heartbeat = '{\"url\": \"https://hc.example/a\", \"on\": [\"success\"]}'")
        .execute(f.db.pool())
        .await
        .unwrap();
    // The job's only run of the month.
    sqlx::query(
        "INSERT INTO sexton.heartbeats (job_id, execution_id, attempt, event, address, created_at, due_at, tries, state, finished_at)
         SELECT id, gen_random_uuid(), 1, 'success', 'https://hc.example', $1::timestamptz - interval '1 hour', $1, 3, 'dropped', $1
         FROM sexton.jobs",
    )
    .bind(now(0))
    .execute(f.db.pool())
    .await
    .unwrap();
    let line = "heartbeats_undelivered heartbeats_undelivered medium".to_owned();
    for seconds in [0, 60, 86_399] {
        judge(&f, seconds).await;
    }
    assert!(open(&f).await.contains(&line));
    judge(&f, 86_400).await;
    assert!(!open(&f).await.contains(&line));
}
