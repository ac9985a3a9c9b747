//! Which changes of an execution write a heartbeat.

use sexton_model::state::State;
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::{NewExecution, NewJob};
use uuid::Uuid;

use super::at;

const RUNNING: &str = "state = 'running', heartbeat = true, worker_id = gen_random_uuid(), open_token = gen_random_uuid(),
    lease_until = now(), started_at = now(), next_attempt_at = NULL, finished_at = NULL";
const ENDED: &str = "worker_id = NULL, open_token = NULL, lease_until = NULL, next_attempt_at = NULL, finished_at = now()";
const WAITS: &str = "worker_id = NULL, open_token = NULL, lease_until = NULL, next_attempt_at = now(), finished_at = NULL";

/// Moves an execution of a job with a heartbeat through these changes; returns the events that were written.
async fn events(on: &str, changes: &[String]) -> Vec<String> {
    let db = TestDatabase::create().await.unwrap();
    let job = NewJob::new("a.b").insert(db.pool()).await.unwrap();
    let heartbeat = format!("{{\"url\": \"https://hc.example/a\", \"on\": [{on}]}}");
    sqlx::query("UPDATE sexton.jobs SET heartbeat = $1::jsonb")
        .bind(heartbeat)
        .execute(db.pool())
        .await
        .unwrap();
    let id: Uuid =
        NewExecution::new(job, State::Pending, at(0)).insert(db.pool()).await.unwrap().get();
    for change in changes {
        let statement = format!("UPDATE sexton.executions SET {change} WHERE id = $1");
        sqlx::query(sqlx::AssertSqlSafe(statement)).bind(id).execute(db.pool()).await.unwrap();
    }
    sqlx::query_scalar("SELECT event FROM sexton.heartbeats ORDER BY id")
        .fetch_all(db.pool())
        .await
        .unwrap()
}

const ALL: &str = "\"start\", \"success\", \"failure\"";

fn ended(state: &str) -> String {
    format!("state = '{state}', {ENDED}")
}

#[tokio::test]
async fn attempts_report_their_start_and_executions_their_end() {
    let running = RUNNING.to_owned();
    let retrying = format!("state = 'retrying', {WAITS}");
    let requeued = format!("state = 'pending', {WAITS}");
    let skipped = format!("state = 'skipped', skip_reason = 'stale', {ENDED}");
    let cases: Vec<(Vec<String>, &[&str])> = vec![
        (vec![running.clone(), ended("succeeded")], &["start", "success"]),
        (
            vec![running.clone(), retrying, running.clone(), ended("failed")],
            &["start", "start", "failure"],
        ),
        (
            vec![running.clone(), ended("failed"), requeued, running.clone(), ended("succeeded")],
            &["start", "failure", "start", "success"],
        ),
        // An operator says that the effect has happened.
        (
            vec![running.clone(), ended("failed"), ended("succeeded")],
            &["start", "failure", "success"],
        ),
        // Discarded and restored, it has not failed once more.
        (
            vec![running.clone(), ended("failed"), ended("discarded"), ended("failed")],
            &["start", "failure"],
        ),
        (vec![ended("failed")], &["failure"]),
        (vec![skipped], &[]),
        (vec![ended("cancelled")], &[]),
        (vec![running.clone(), ended("cancelled")], &["start"]),
        (vec!["backfill = 1".to_owned(), running, ended("succeeded")], &[]),
    ];
    for (changes, wanted) in cases {
        assert_eq!(events(ALL, &changes).await, wanted, "{changes:?}");
    }
}

#[tokio::test]
async fn only_what_the_job_asks_for_is_reported() {
    let run = [RUNNING.to_owned(), ended("failed")];
    assert_eq!(events("\"failure\"", &run).await, ["failure"]);
    assert_eq!(events("\"success\"", &run).await, Vec::<String>::new());
}
