//! Another language's client publishes and moves messages, as users of RabbitMQ do.

use std::process::Stdio;

use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties};
use sexton_broker::{PoolName, names};
use sexton_tests::platform::Platform;
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::{by_hand, count, until};

/// The ready messages of a queue.
pub(super) async fn depth(platform: &Platform, queue: &str) -> u32 {
    let connection = Connection::connect(platform.amqp_url(), ConnectionProperties::default());
    let connection = connection.await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let queue = channel.queue_declare(queue.into(), passive, FieldTable::default()).await.unwrap();
    let ready = queue.message_count();
    connection.close(200, "done".into()).await.unwrap();
    ready
}

/// Installs the client once per test run; see the script.
async fn client() -> &'static str {
    static PATH: OnceCell<String> = OnceCell::const_new();
    PATH.get_or_init(|| async {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/install.sh");
        let done = Command::new("sh").arg(script).stdin(Stdio::null()).output().await.unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "the Python client could not be installed: {stderr}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    })
    .await
}

/// Runs `clients/messages.py` with `arguments`.
async fn python(platform: &Platform, arguments: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/messages.py");
    let done = Command::new("python3")
        .arg(script)
        .arg(platform.amqp_url())
        .args(arguments)
        .env("PYTHONPATH", client().await)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[tokio::test]
async fn a_python_client_s_documented_payloads_run() {
    let mut platform = Platform::new().await.unwrap();
    let seen = platform.folder().join("seen");
    let save = format!("cat >> {0}; echo >> {0}", seen.display());
    platform.catalogue(&format!("[tasks.report]\ncommand = [\"/bin/sh\", \"-c\", \"{save}\"]\n"));
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = platform.start_worker("w1", &[]).unwrap();
    worker.ready().await;
    let queue = names::main_queue(platform.namespace(), &PoolName::default_pool());
    let long =
        r#"{"type":"report","id":25,"scheduler_id":16,"params_scheduler":"{\"year\": 2025}"}"#;
    // With a message id: delivered three times, run once. Without one: each message is a task.
    for _ in 0..3 {
        python(&platform, &["publish", &queue, long, "--message-id", "report-25"]).await;
    }
    python(&platform, &["publish", &queue, r#"{"type":"report"}"#]).await;
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 2).await;
    until(&platform, "sexton.all_attempts", 2).await;
    platform
        .eventually("both have left their params", super::FINAL_TIMEOUT, async || {
            let text = std::fs::read_to_string(&seen).unwrap_or_default();
            let mut lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
            lines.sort_unstable();
            (lines == [r#"{"id":25,"scheduler_id":16,"year":2025}"#, "{}"]).then_some(())
        })
        .await;
    assert_eq!(count(&platform, "sexton.executions WHERE execution_key = 'report-25'").await, 1);
}

#[tokio::test]
async fn a_parked_message_that_a_python_client_moves_is_a_requeue_and_moved_twice_it_runs_once() {
    let mut platform = Platform::new().await.unwrap();
    let repaired = platform.folder().join("repaired");
    let test = format!("test -e {}", repaired.display());
    platform.catalogue(&format!("[tasks.work]\ncommand = [\"/bin/sh\", \"-c\", \"{test}\"]\n"));
    platform.apply(&by_hand("a.b", "work", "retry = { max_retries = 0 }")).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = platform.start_worker("w1", &[]).unwrap();
    worker.ready().await;
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    until(
        &platform,
        "sexton.executions WHERE state = 'failed' AND ticket_published_at IS NOT NULL",
        1,
    )
    .await;

    std::fs::write(&repaired, "").unwrap();
    let failed = names::failed_queue(platform.namespace());
    let main = names::main_queue(platform.namespace(), &PoolName::default_pool());
    let moved = python(&platform, &["move", &failed, &main, "--copies", "2"]).await;
    assert_eq!(moved.trim(), "moved 1 message(s), 2 copies each");
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 1).await;
    assert_eq!(count(&platform, "sexton.all_attempts").await, 2, "the parked one, and one more");
    until(&platform, "sexton.operator_actions WHERE action = 'hand_requeue'", 1).await;
    // The second copy is recognised and dropped.
    platform
        .eventually("the queues are empty", super::FINAL_TIMEOUT, async || {
            (depth(&platform, &main).await + depth(&platform, &failed).await == 0).then_some(())
        })
        .await;
    assert_eq!(count(&platform, "sexton.all_attempts").await, 2);
}

#[tokio::test]
async fn a_parked_message_that_a_python_client_copies_twice_runs_once_and_its_original_is_swept() {
    let mut platform = Platform::new().await.unwrap();
    let repaired = platform.folder().join("repaired");
    let test = format!("test -e {}", repaired.display());
    platform.catalogue(&format!("[tasks.work]\ncommand = [\"/bin/sh\", \"-c\", \"{test}\"]\n"));
    platform.apply(&by_hand("a.b", "work", "retry = { max_retries = 0 }")).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = platform.start_worker("w1", &[]).unwrap();
    worker.ready().await;
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    until(
        &platform,
        "sexton.executions WHERE state = 'failed' AND ticket_published_at IS NOT NULL",
        1,
    )
    .await;
    std::fs::write(&repaired, "").unwrap();
    let failed = names::failed_queue(platform.namespace());
    let main = names::main_queue(platform.namespace(), &PoolName::default_pool());
    for _ in 0..2 {
        let copied = python(&platform, &["copy", &failed, &main]).await;
        assert!(
            ["copied 1 message(s)", "copied 0 message(s)"].contains(&copied.trim()),
            "{copied}"
        );
    }
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 1).await;
    until(&platform, "sexton.operator_actions WHERE action = 'hand_requeue'", 1).await;
    // What the client left in the failed queue is no longer true: the next sweep removes it.
    platform
        .eventually("the queues are empty", super::FINAL_TIMEOUT, async || {
            (depth(&platform, &main).await + depth(&platform, &failed).await == 0).then_some(())
        })
        .await;
    assert_eq!(count(&platform, "sexton.all_attempts").await, 2, "the parked one, and one more");
    assert_eq!(count(&platform, "sexton.operator_actions WHERE action = 'hand_requeue'").await, 1);
}
