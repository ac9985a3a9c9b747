//! `sexton enqueue` and `sexton executions wait`.

use serde_json::json;
use sexton_tests::platform::Platform;

use crate::process::{by_hand, count};

const JOB: &str = "billing.charge";

async fn platform() -> Platform {
    let platform = Platform::new().await.unwrap();
    platform.apply(&by_hand(JOB, "work", "params = { currency = \"EUR\" }")).await.unwrap();
    platform
}

async fn params(platform: &Platform, key: &str) -> serde_json::Value {
    let reading =
        sqlx::query_scalar("SELECT params FROM sexton.executions WHERE execution_key = $1");
    reading.bind(key).fetch_one(platform.store().pool()).await.unwrap()
}

#[tokio::test]
async fn an_execution_is_enqueued_once_with_its_arguments() {
    let platform = platform().await;
    let file = platform.folder().join("params.json");
    std::fs::write(&file, r#"{"cents": 4900}"#).unwrap();
    let from_file = format!("@{}", file.display());
    let command =
        ["enqueue", JOB, "--key", "order-1", "--params", &*from_file, "--label", "team=a=b"];
    let first = platform.sexton_json(&command).await;
    assert_eq!((&first["created"], &first["state"]), (&json!(true), &json!("pending")));
    assert_eq!(params(&platform, "order-1").await, json!({"currency": "EUR", "cents": 4900}));
    assert_eq!(count(&platform, "sexton.executions WHERE labels = '{\"team\": \"a=b\"}'").await, 1);
    let again = platform.sexton_json(&command).await;
    assert_eq!((&again["created"], &again["id"]), (&json!(false), &first["id"]));
    let moved = platform
        .sexton(&["enqueue", JOB, "--key", "order-1", "--if-exists", "postpone", "--delay", "1h"])
        .await;
    assert!(moved.stdout.contains("has an execution with the key order-1"), "{moved}");
    assert_eq!(
        count(&platform, "sexton.executions WHERE scheduled_for > now() + interval '59 min'").await,
        1
    );
    let labels: Option<serde_json::Value> =
        sqlx::query_scalar("SELECT labels FROM sexton.executions")
            .fetch_one(platform.store().pool())
            .await
            .unwrap();
    assert_eq!(labels, None, "those of the last call");
}

#[tokio::test]
async fn what_cannot_be_enqueued_is_refused_with_the_remedy() {
    let platform = platform().await;
    for (arguments, status, message) in [
        (vec!["billing.chrage"], 3, "there is no job"),
        (vec![JOB, "--params", "[1]"], 2, "is not a JSON object"),
        (vec![JOB, "--params", "@missing.json"], 1, "missing.json cannot be read"),
        (vec![JOB, "--delay", "401d"], 2, "is longer than 400d"),
        (vec![JOB, "--unique-for", "open"], 2, "--key"),
        (vec![JOB, "--key", "k", "--unique-for", "1x"], 2, "ever, open, or a period"),
        (vec![JOB, "--key", " "], 2, "key is empty"),
        (vec![JOB, "--label", "a"], 2, "NAME=TEXT"),
        (vec![JOB, "--from", "missing.jsonl"], 1, "missing.jsonl cannot be read"),
    ] {
        let refused = platform.sexton(&[&["enqueue"], &*arguments].concat()).await;
        assert_eq!(refused.status.code(), Some(status), "{arguments:?}: {refused}");
        assert!(refused.stderr.contains(message), "{arguments:?}: {refused}");
    }
    platform.sexton(&["jobs", "pause", JOB, "--reason", "month end"]).await;
    let paused = platform.sexton(&["enqueue", JOB]).await;
    assert_eq!(paused.status.code(), Some(4));
    assert!(
        paused.stderr.contains("is paused") && paused.stderr.contains("sexton jobs resume"),
        "{paused}"
    );
    assert_eq!(count(&platform, "sexton.executions").await, 0);
}

#[tokio::test]
async fn a_file_is_enqueued_line_by_line_and_a_repetition_enqueues_the_rest() {
    let platform = platform().await;
    let file = platform.folder().join("lines.jsonl");
    let path = file.display().to_string();
    let line = |n: usize| format!("{{\"key\": \"k-{n}\", \"params\": {{\"n\": {n}}}}}\n");
    let good: String = (0..2_500).map(line).collect();
    std::fs::write(&file, format!("{good}\n{{\"key\": \" \"}}\n{{\"key\": \"z\", \"kye\": 1}}\n"))
        .unwrap();
    let stopped = platform.sexton(&["enqueue", JOB, "--from", &path]).await;
    assert_eq!(stopped.status.code(), Some(1), "{stopped}");
    for part in
        ["line 2502: key is empty", "line 2503: unknown fields [\"kye\"]", "the 2000 lines before"]
    {
        assert!(stopped.stderr.contains(part), "{part}: {stopped}");
    }
    assert_eq!(count(&platform, "sexton.executions").await, 2_000);
    std::fs::write(&file, format!("{good}{{\"params\": {{}}}}\n")).unwrap();
    let stopped = platform.sexton(&["enqueue", JOB, "--from", &path]).await;
    assert!(stopped.stderr.contains("lines.jsonl:2501: has no key"), "{stopped}");
    std::fs::write(&file, good).unwrap();
    let done = platform.sexton_json(&["enqueue", JOB, "--from", &path]).await;
    assert_eq!((&done["created"], &done["known"]), (&json!(500), &json!(2_000)));
    assert_eq!(count(&platform, "sexton.executions").await, 2_500);
    std::fs::write(&file, "\n").unwrap();
    let empty = platform.sexton(&["enqueue", JOB, "--from", &path]).await;
    assert!(empty.stderr.contains("is empty; nothing was enqueued"), "{empty}");
}

#[tokio::test]
async fn a_script_waits_for_the_end_of_an_execution() {
    let mut platform = platform().await;
    platform.catalogue("[tasks.work]\nnoop = true\n");
    let id = platform.sexton_json(&["enqueue", JOB]).await["id"].as_str().unwrap().to_owned();
    let early = platform.sexton(&["executions", "wait", &id, "--timeout", "10ms"]).await;
    assert_eq!(early.status.code(), Some(1));
    assert!(early.stderr.contains("is still pending after 10ms"), "{early}");
    let mut scheduler = platform.start_scheduler("s", &[]).unwrap();
    let mut worker = platform.start_worker("w", &[]).unwrap();
    scheduler.ready().await;
    worker.ready().await;
    let ended = platform.sexton_json(&["executions", "wait", &id, "--timeout", "2m"]).await;
    assert_eq!((&ended["state"], &ended["job_name"]), (&json!("succeeded"), &json!(JOB)));
    let unknown = uuid::Uuid::now_v7().to_string();
    let missing = platform.sexton(&["executions", "wait", &unknown]).await;
    assert_eq!(missing.status.code(), Some(3), "{missing}");
}
