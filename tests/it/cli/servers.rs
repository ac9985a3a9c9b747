//! Servers that are away, refuse or are not ready, and `sexton migrate` and `sexton status`.

use std::process::Stdio;

use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use serde_json::{Value, json};
use sexton_model::zone::tz_data_version;
use sexton_tests::namespace::TestNamespace;
use sexton_tests::platform::Platform;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::{Console, DEADLINE, keys, run, sexton};

#[tokio::test]
async fn each_way_to_be_without_a_database_has_its_own_message() {
    let unset = run(&["status"], &[], "").await.expect(2);
    assert!(unset.stderr.contains("DATABASE_URL"), "{}", unset.stderr);
    // A port that was free a moment ago, and is ours: nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgres://u:hunter2@127.0.0.1:{port}/x");
    let ended = run(&["--json", "jobs", "list"], &[("DATABASE_URL", &url)], "").await.expect(5);
    assert!(ended.stderr.contains("refused") && ended.stderr.contains("check DATABASE_URL"));
    assert_eq!(keys(&ended.json()), ["error", "exit_status"]);
    assert!(!ended.stderr.contains("hunter2") && !ended.stdout.contains("hunter2"));
    let misspelt = run(&["status"], &[("SEXTON_NAMESPCE", "x")], "").await.expect(2);
    assert!(misspelt.stderr.contains("SEXTON_NAMESPACE"), "{}", misspelt.stderr);
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://u@{}/x", silent.local_addr().unwrap());
    let ended = run(&["status"], &[("DATABASE_URL", &url)], "").await.expect(5);
    assert!(ended.stderr.contains("does not answer within"), "{}", ended.stderr);
}

#[tokio::test]
async fn an_empty_database_is_reported_as_unmigrated_until_it_is_migrated() {
    let console = Console::new().await;
    let name = sqlx::query_scalar::<_, String>("SELECT current_database()::text");
    let name = name.fetch_one(console.db.pool()).await.unwrap();
    sqlx::query("DROP SCHEMA sexton CASCADE").execute(console.db.pool()).await.unwrap();
    let ended = console.run(&["jobs", "list"]).await.expect(6);
    assert!(ended.stderr.contains("run `sexton migrate`"), "{name}: {}", ended.stderr);
    let first = console.json(&["migrate"]).await;
    assert_eq!(keys(&first), ["applied", "schema_version"]);
    assert!(first["applied"].as_i64().unwrap() >= 1);
    assert_eq!(console.json(&["migrate"]).await["applied"], 0);
    assert_eq!(console.items(&["jobs", "list"]).await, json!([]));
}

#[tokio::test]
async fn a_migration_does_not_wait_long_for_a_table_and_says_what_to_do() {
    let console = Console::new().await;
    let migrator = sexton_tests::database::migrator().await.unwrap();
    migrator.undo(console.db.pool(), 0).await.unwrap();
    // The file and its record are one transaction, which waits for this table too.
    let mut holder = console.db.pool().begin().await.unwrap();
    sqlx::query("LOCK TABLE sexton._sqlx_migrations IN SHARE MODE")
        .execute(&mut *holder)
        .await
        .unwrap();
    let ended = console.run(&["migrate"]).await.expect(1);
    assert!(ended.stderr.contains("in use"), "{}", ended.stderr);
    assert!(ended.stderr.contains("run `sexton migrate` again"), "{}", ended.stderr);
    holder.rollback().await.unwrap();
    assert!(console.json(&["migrate"]).await["applied"].as_i64().unwrap() >= 1);
}

#[tokio::test]
async fn status_shows_the_rows_even_if_the_broker_cannot_be_asked() {
    let console = Console::with_jobs().await;
    console.failed().await;
    console.trigger("shop.mail").await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("amqp://u:hunter2@127.0.0.1:{port}/%2f");
    let env = [("AMQP_URL", url.as_str())];
    let status = console.run_with(&["--json", "status"], &env, "").await.expect(0).json();
    let expected =
        ["broker", "database", "failed_last_hour", "incidents", "instances", "pools", "warnings"];
    assert_eq!(keys(&status), expected);
    assert_eq!(
        keys(&status["database"]),
        [
            "failed",
            "jobs_active",
            "jobs_paused",
            "next_fire_at",
            "now",
            "oldest_failed_at",
            "oldest_unpublished_ms",
            "schema_version",
            "unpublished",
        ]
    );
    assert_eq!(
        keys(&status["pools"][0]),
        [
            "jobs",
            "oldest_due_ms",
            "pending",
            "pool",
            "queue_consumers",
            "queue_ready",
            "retry_queues_ready",
            "retrying",
            "running",
            "slots",
            "waiting",
            "workers",
        ]
    );
    let database = &status["database"];
    assert_eq!((&database["failed"], &database["unpublished"]), (&json!(1), &json!(1)));
    assert_eq!((&status["pools"][0]["pending"], &status["instances"]), (&json!(1), &json!([])));
    assert_eq!(status["broker"]["reachable"], false);
    let status = console.run_with(&["status"], &env, "").await.expect(0);
    assert!(status.stdout.contains("unavailable: "), "{}", status.stdout);
    assert!(!status.stdout.contains("hunter2"));
    let without = console.run(&["status"]).await.expect(0);
    assert!(without.stdout.contains("AMQP_URL is not set"), "{}", without.stdout);
}

#[tokio::test]
async fn status_counts_what_is_in_the_queues() {
    let platform = Platform::new().await.unwrap();
    let scheduler = platform.start_scheduler("s1", &[]).unwrap();
    platform.apply("[[job]]\nname = \"a.b\"\ntask = \"nobody-offers-this\"\n").await.unwrap();
    for _ in 0..3 {
        platform.sexton_json(&["jobs", "trigger", "a.b"]).await;
    }
    let status = platform
        .eventually("three tickets wait in the queue", DEADLINE, async || {
            let status = platform.sexton_json(&["status"]).await;
            (status["pools"][0]["queue_ready"] == 3).then_some(status)
        })
        .await;
    assert_eq!(status["broker"]["reachable"], true);
    assert_eq!(status["broker"]["failed_ready"], 0);
    assert_eq!(status["pools"][0]["retry_queues_ready"], 0);
    assert_eq!(status["instances"][0]["name"], "s1");
    assert_eq!(status["instances"][0]["tz_version"], tz_data_version());
    let stdout = platform.sexton(&["status"]).await.stdout;
    assert!(stdout.contains("TZ DATA") && stdout.contains(tz_data_version()), "{stdout}");
    assert_ne!(status["instances"][0]["heartbeat_at"], Value::Null);
    drop(scheduler);
}

#[tokio::test]
async fn status_declares_nothing_on_the_broker_and_reports_a_missing_namespace() {
    let platform = Platform::new().await.unwrap();
    let status = platform.sexton(&["status"]).await;
    let warning = format!("no queues of namespace {} exist", platform.namespace());
    assert!(status.stdout.contains(&warning), "{}", status.stdout);
    assert!(status.stdout.contains("check SEXTON_NAMESPACE"), "{}", status.stdout);
    let broker = &platform.sexton_json(&["status"]).await["broker"];
    assert_eq!((&broker["reachable"], &broker["failed_ready"]), (&json!(true), &Value::Null));
    assert!(broker["error"].as_str().unwrap().contains("SEXTON_NAMESPACE"), "{broker}");
    // The broker itself answers here: a passive declaration of a missing queue closes the channel.
    let raw = TestNamespace::named_on(platform.namespace().as_str(), platform.amqp_url());
    for queue in [raw.failed(), raw.main()] {
        let channel = raw.raw().await;
        let passive = QueueDeclareOptions::durable().passive();
        let depth =
            channel.channel.queue_declare(queue.as_str().into(), passive, FieldTable::default());
        let error = depth.await.expect_err("the queue is not there").to_string();
        assert!(error.contains("NOT_FOUND") || error.contains("404"), "{queue}: {error}");
    }
}

#[tokio::test]
async fn a_reader_that_leaves_early_ends_the_command_quietly() {
    let mut command = Command::new(sexton());
    command.args(["cron", "next", "* * * * * *", "--count", "1000"]).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next_line().await.unwrap().unwrap();
    drop(lines);
    let output = tokio::time::timeout(DEADLINE, child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[tokio::test]
async fn help_lists_every_exit_status_and_every_setting() {
    let help = run(&["--help"], &[], "").await.expect(0).stdout;
    for status in 0..=7 {
        assert!(help.contains(&format!("\n  {status}  ")), "{status}: {help}");
    }
    for setting in ["DATABASE_URL", "AMQP_URL", "SEXTON_NAMESPACE"] {
        assert!(help.contains(setting), "{setting}");
    }
    run(&["frobnicate"], &[], "").await.expect(2);
}
