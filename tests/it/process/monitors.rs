//! Monitors with real programs: a task that the kernel kills, and a lock that somebody keeps.

use std::time::Duration;

use serde_json::Value;
use sexton_peers::http::{Seen, Server};
use sexton_tests::platform::Platform;
use sqlx::{Connection as _, PgConnection};

use super::{FINAL_TIMEOUT, count};

/// Waits for the open incident of a job, and returns it.
async fn incident(platform: &Platform, job: &str) -> Value {
    platform
        .eventually("the incident is open", FINAL_TIMEOUT, async || {
            let list = platform.sexton_json(&["incidents", "list", "--contains", job]).await;
            list["items"].as_array()?.first().cloned()
        })
        .await
}

/// A channel that gets every incident.
async fn channel(platform: &Platform) -> Server {
    let server = Server::answering("200 OK", "", "").await;
    let file = platform.folder().join("alerts.toml");
    let url = format!("http://{}/hook", server.address);
    let webhook = format!("webhook = {{ url = \"{url}\", allow_private = true }}");
    let alerts =
        format!("[[channel]]\nname = \"ops\"\n{webhook}\n[[route]]\nchannels = [\"ops\"]\n");
    std::fs::write(&file, alerts).unwrap();
    let applied = platform.sexton(&["alerts", "apply", "-f", file.to_str().unwrap()]).await;
    assert!(applied.status.success(), "{applied}");
    server
}

/// The next message of a channel.
async fn message(platform: &Platform, server: &mut Server) -> Value {
    let sent = "sexton.notifications WHERE state = 'sent'";
    let is_sent = async || (count(platform, sent).await > 0).then_some(());
    platform.eventually("a message is sent", FINAL_TIMEOUT, is_sent).await;
    let Seen::Request(request) = server.next().await else { panic!("no request") };
    serde_json::from_str(&request.body).unwrap()
}

fn assert_parts(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}

/// The story of the nightly job that the kernel killed, and that nobody noticed for 72 hours.
#[tokio::test]
async fn a_task_killed_by_the_kernel_is_an_incident_with_host_signal_and_last_output() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue(
        "[tasks.nightly]\ncommand = [\"sh\", \"-c\", \"echo charging customer 41; kill -KILL $$\"]\n",
    );
    let job = "[[job]]\nname = \"billing.nightly\"\ntask = \"nightly\"\nexpect_within = \"1h\"\nseverity = \"high\"
               retry = { max_retries = 0, max_crashes = 1 }\nlabels = { team = \"billing\" }\n";
    platform.apply(job).await.unwrap();
    let mut server = channel(&platform).await;
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let _worker = platform.start_worker("night-host", &[]).unwrap();
    platform.sexton(&["jobs", "trigger", "billing.nightly"]).await;
    let incident = incident(&platform, "billing.nightly").await;
    assert_eq!((&incident["cause"], &incident["severity"]), (&"parked".into(), &"high".into()));
    let detail = incident["detail"].as_str().unwrap();
    assert_parts(detail, &["night-host", "signal 9", "charging customer 41"]);
    let message = message(&platform, &mut server).await;
    assert_eq!(message["type"], "incident.opened");
    let parts = ["billing.nightly", "parked", "night-host", "signal 9", "charging customer 41"];
    assert_parts(&message["data"].to_string(), &parts);
    let shown = platform.sexton(&["incidents", "show", "billing.nightly"]).await;
    assert!(shown.stdout.contains("charging customer 41"), "{shown}");

    // Somebody takes it on, and the job runs again.
    let id = incident["id"].as_str().unwrap();
    let digits = &id[..18];
    let taken = platform.sexton(&["incidents", "ack", digits, "--reason", "looking"]).await;
    assert!(taken.stdout.contains("is acknowledged"), "{taken}");
    let silence = ["incidents", "silence", digits, "--for", "2h", "--reason", "the bank is down"];
    let silenced = platform.sexton(&silence).await;
    assert!(silenced.stdout.contains("is silenced until"), "{silenced}");
    let again = platform.sexton(&["incidents", "ack", id]).await;
    assert!(again.stderr.contains("acknowledged already, by"), "{again}");
    let monitors = platform.sexton(&["monitors", "list", "--open"]).await;
    assert!(monitors.stdout.contains("billing.nightly"), "{monitors}");
}

/// The whole host dies, so nobody reports anything. Only the deadline shows it.
#[tokio::test]
async fn a_worker_killed_with_its_task_is_a_message_once_the_deadline_is_over() {
    let mut platform = Platform::new().await.unwrap();
    let script = "echo charging customer 41; sleep 600";
    platform.catalogue(&format!("[tasks.nightly]\ncommand = [\"sh\", \"-c\", \"{script}\"]\n"));
    let job = "[[job]]\nname = \"billing.nightly\"\ntask = \"nightly\"\nseverity = \"high\"\nlease = \"2s\"\n";
    platform.apply(&format!("{job}expect_within = \"20s\"\n")).await.unwrap();
    let mut server = channel(&platform).await;
    let scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let other = platform.start_scheduler("s2", &[]).unwrap();
    let mut worker = platform.start_worker("night-host", &[]).unwrap();
    platform.sexton(&["jobs", "trigger", "billing.nightly"]).await;
    let written = "sexton.attempt_output WHERE content LIKE '%customer 41%'";
    let is_written = async || (count(&platform, written).await > 0).then_some(());
    platform.eventually("the task has written", FINAL_TIMEOUT, is_written).await;
    worker.kill();
    let message = message(&platform, &mut server).await;
    assert_eq!(message["type"], "incident.opened");
    let text = message["data"].to_string();
    assert_parts(&text, &["billing.nightly", "missed", "night-host", "charging customer 41"]);
    // Not before the deadline; and nobody has written it twice.
    let late = "sexton.notifications n, sexton.executions e WHERE n.created_at >= e.scheduled_for + interval '20 s'";
    assert_eq!(count(&platform, late).await, 1);
    assert_eq!(count(&platform, "sexton.notifications").await, 1);
    for scheduler in [scheduler, other] {
        scheduler.terminate();
        let mut scheduler = scheduler;
        scheduler.exit(Duration::from_mins(1)).await;
    }
    assert!(server.saw_nothing_more());
}

#[tokio::test]
async fn a_lock_that_somebody_keeps_opens_an_incident() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.work]\ncommand = [\"true\"]\n");
    let job = "[[job]]\nname = \"a.b\"\ntask = \"work\"\nlock_key = 5102\non_locked = \"wait\"\n";
    platform.apply(job).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let _worker = platform.start_worker("w1", &[]).unwrap();
    let mut other = PgConnection::connect(platform.database_url()).await.unwrap();
    sqlx::query("SELECT pg_advisory_lock(5102)").execute(&mut other).await.unwrap();
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    // The deadline is set once a worker has found the lock held: before that, nobody could say why the execution is late.
    let locked = async || {
        (count(&platform, "sexton.attempts WHERE outcome = 'locked'").await > 0).then_some(())
    };
    platform.eventually("a worker finds the lock held", FINAL_TIMEOUT, locked).await;
    platform.apply(&format!("{job}expect_within = \"2s\"\n")).await.unwrap();
    let found = incident(&platform, "a.b").await;
    assert_eq!(found["cause"], "lock_held", "{found}");
    // Freed, the execution succeeds, and the incident is over.
    other.close().await.unwrap();
    platform
        .eventually("the incident is resolved", FINAL_TIMEOUT, async || {
            let list = platform.sexton_json(&["incidents", "list"]).await;
            list["items"].as_array()?.is_empty().then_some(())
        })
        .await;
    let all = platform.sexton_json(&["incidents", "list", "--all"]).await;
    assert_eq!(all["items"][0]["resolved_by"], "sexton");
}
