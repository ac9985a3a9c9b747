//! What the programs say of a parked task.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use lapin::options::{BasicGetOptions, BasicRejectOptions};
use lapin::{Connection, ConnectionProperties};
use serde_json::Value;
use sexton_broker::PoolName;
use sexton_broker::names::main_queue;
use sexton_model::state::State;
use sexton_service::clock;
use sexton_tests::factory::{NewExecution, NewJob};
use sexton_tests::platform::Platform;

use crate::process::{FINAL_TIMEOUT, until};

pub(super) const JSON: [(&str, &str); 1] = [("LOG_FORMAT", "json")];

#[tokio::test]
async fn every_parked_message_is_logged_in_one_line_with_the_same_fields() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.work]\ncommand = [\"/bin/sh\", \"-c\", \"exit 65\"]\n");
    platform.uses_pool("other");
    let pool = platform.store().pool().clone();
    let now = clock::now();
    let ago = |minutes| now - TimeDelta::minutes(minutes);
    for (name, task, of_pool, state, at) in [
        ("way.settled", "work", "default", State::Pending, ago(1)),
        ("way.unopened", "nobody.offers", "default", State::Pending, ago(120)),
        ("way.lost", "work", "default", State::Running, ago(5)),
        ("way.rejected", "work", "other", State::Pending, ago(1)),
    ] {
        let (task_type, pool_name) = (task.to_owned(), of_pool.to_owned());
        let job = NewJob { task_type, pool: pool_name, ..NewJob::new(name) };
        let id = job.insert(&pool).await.unwrap();
        let crashed = i32::from(state == State::Running);
        let execution = NewExecution { crashes_used: crashed, ..NewExecution::new(id, state, at) };
        execution.insert(&pool).await.unwrap();
    }
    sqlx::query("UPDATE sexton.jobs SET max_retries = 0, max_crashes = 1")
        .execute(&pool)
        .await
        .unwrap();
    let mut scheduler = platform.start_scheduler("s1", &JSON).unwrap();
    let mut worker = platform.start_worker("w1", &JSON).unwrap();
    // A hand that throws the ticket away: the broker parks it.
    until(
        &platform,
        "sexton.executions WHERE pool = 'other' AND ticket_published_at IS NOT NULL",
        1,
    )
    .await;
    let properties = ConnectionProperties::default();
    let connection = Connection::connect(platform.amqp_url(), properties).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let queue = main_queue(platform.namespace(), &PoolName::new("other").unwrap());
    let taken = channel.basic_get(queue.into(), BasicGetOptions::default()).await.unwrap().unwrap();
    taken.delivery.acker.reject(BasicRejectOptions { requeue: false }).await.unwrap();
    until(&platform, "sexton.executions WHERE state = 'failed'", 4).await;

    let four = async || (parked(&platform.logs()).len() >= 4).then_some(());
    platform.eventually("four tasks are logged", FINAL_TIMEOUT, four).await;
    // A program that has ended has logged everything.
    for program in [&mut scheduler, &mut worker] {
        program.terminate();
        program.exit(FINAL_TIMEOUT).await;
    }
    let lines = parked(&platform.logs());
    assert_eq!(lines.len(), 4, "each is logged once: {lines:?}");
    let mut classes = BTreeMap::new();
    for line in &lines {
        for field in [
            "task.type",
            "job.name",
            "scheduler.id",
            "scheduler.name",
            "execution.id",
            "attempt.number",
            "retry.count",
            "failed_at",
            "error.class",
            "reason",
        ] {
            assert!(!line[field].is_null(), "{field} is missing: {line}");
        }
        assert_eq!(line["level"], "ERROR");
        let text = |field: &str| line[field].as_str().unwrap().to_owned();
        classes.insert(text("job.name"), text("error.class"));
        assert_eq!(text("scheduler.name"), "test:1", "whichever claimed it");
    }
    let expected = [
        ("way.lost", "lost"),
        ("way.rejected", "rejected"),
        ("way.settled", "exit_65"),
        ("way.unopened", "unknown_task_type"),
    ];
    let expected: BTreeMap<String, String> =
        expected.iter().map(|(job, class)| ((*job).to_owned(), (*class).to_owned())).collect();
    assert_eq!(classes, expected);
}

/// The lines that tell of parked tasks.
pub(super) fn parked(logs: &str) -> Vec<Value> {
    let lines = logs.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_parked_line =
        |line: &Value| line["message"].as_str().is_some_and(|it| it.contains(" is parked: "));
    lines.filter(is_parked_line).collect()
}

#[tokio::test]
async fn status_warns_of_too_much_that_failed_and_its_exit_status_says_so_when_asked() {
    let platform = Platform::new().await.unwrap();
    let pool = platform.store().pool();
    let job = NewJob { pool: "default".to_owned(), ..NewJob::new("a.b") };
    let job = job.insert(pool).await.unwrap();
    sqlx::query("UPDATE sexton.jobs SET status = 'paused', paused_at = now()")
        .execute(pool)
        .await
        .unwrap();
    for minutes in [1, 2, 300] {
        let at = clock::now() - TimeDelta::minutes(minutes);
        NewExecution::new(job, State::Failed, at).published().insert(pool).await.unwrap();
    }
    let ask = async |env: &[(&str, &str)]| {
        let output = platform.sexton_with(env, &["--json", "status", "--check"]).await;
        let answer: Value = serde_json::from_str(&output.stdout).unwrap();
        let kinds: Vec<String> = answer["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|warning| warning["kind"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(answer["failed_last_hour"], 2, "{output}");
        (output.status.code(), kinds)
    };
    assert_eq!(ask(&[]).await, (Some(0), vec![]), "far below what is set");
    let (code, kinds) = ask(&[("FAILED_WARN_COUNT", "2")]).await;
    assert_eq!((code, kinds), (Some(10), vec!["too_many_failed".to_owned()]));
    assert_eq!(ask(&[("FAILED_WARN_COUNT", "3")]).await.0, Some(0), "as many as are allowed");
    let (code, kinds) = ask(&[("FAILED_WARN_AGE_MS", "3600000")]).await;
    assert_eq!((code, kinds), (Some(10), vec!["failed_for_long".to_owned()]));
    let (code, kinds) = ask(&[("FAILED_WARN_PER_HOUR", "1")]).await;
    assert_eq!((code, kinds), (Some(10), vec!["failing_fast".to_owned()]));
    assert_eq!(ask(&[("FAILED_WARN_PER_HOUR", "2")]).await.0, Some(0), "as many as are expected");
    // Without `--check` the exit status is 0.
    let output = platform.sexton_with(&[("FAILED_WARN_COUNT", "2")], &["status"]).await;
    assert!(output.status.success() && output.stdout.contains("FAILED_WARN_COUNT"), "{output}");
}
