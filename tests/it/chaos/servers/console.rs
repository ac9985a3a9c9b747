//! The command `sexton` behind a network that is cut, slow, and silent.
//!
//! An operator's command always returns, and reports what it knows.

use std::time::Duration;

use sexton_tests::platform::Platform;
use sexton_tests::proxy::Proxy;
use tokio::time::Instant;

use crate::process::by_hand;

/// The delay in each direction: `status` queries about a dozen queues, one after the other.
const DELAY: Duration = Duration::from_millis(50);
/// The limit of every command, whatever happens; the longest timeout in it is 40 s.
const COMES_BACK: Duration = Duration::from_secs(55);

/// Exit statuses.
const DONE: i32 = 0;
const UNREACHABLE: i32 = 5;

#[tokio::test]
async fn a_command_returns_an_error_when_its_connections_are_cut_slow_or_silent() {
    tokio::join!(to_postgresql(), to_rabbitmq());
}

async fn to_postgresql() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.work]\ncommand = [\"/bin/true\"]\n");
    platform.apply(&by_hand("a.b", "work", "")).await.unwrap();
    let proxy = Proxy::before(platform.database_url()).await.unwrap();
    let url = proxy.url(platform.database_url());
    // Without TLS: the proxy must find texts on the wire.
    let separator = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{separator}sslmode=disable");
    let sexton = async |args: &[&str]| {
        let begun = Instant::now();
        let output = platform.sexton_with(&[("DATABASE_URL", &url)], args).await;
        assert!(begun.elapsed() < COMES_BACK, "sexton {args:?} took {:?}", begun.elapsed());
        println!("MEASURED sexton {args:?} took {:?}: {output}", begun.elapsed());
        output
    };

    proxy.cut();
    let cut = sexton(&["jobs", "list"]).await;
    assert_eq!(cut.status.code(), Some(UNREACHABLE), "{cut}");
    assert!(cut.stderr.contains("check DATABASE_URL"), "{cut}");
    proxy.delay(DELAY);
    let slow = sexton(&["jobs", "list"]).await;
    assert!(slow.status.success() && slow.stdout.contains("a.b"), "{slow}");
    proxy.black_hole();
    let silent = sexton(&["jobs", "list"]).await;
    assert_eq!(silent.status.code(), Some(UNREACHABLE), "{silent}");
    assert!(silent.stderr.contains("does not answer within"), "{silent}");

    // The command has connected, and is in the middle of a write. It then does not know whether the
    // write happened; the same key makes it safe to repeat.
    proxy.swallow_answers_matching(b"the-callers-key", 1);
    let trigger = ["jobs", "trigger", "a.b", "--key", "the-callers-key"];
    let lost = sexton(&trigger).await;
    assert_eq!(lost.status.code(), Some(UNREACHABLE), "{lost}");
    assert!(lost.stderr.contains("no answer within"), "{lost}");
    proxy.pass();
    let again = sexton(&trigger).await;
    assert!([Some(DONE), Some(4)].contains(&again.status.code()), "{again}");
    let all = platform.sexton_items(&["executions", "list", "--job", "a.b"]).await;
    assert_eq!(all.as_array().map(Vec::len), Some(1), "{all}");
}

/// Only `status` queries RabbitMQ, and it can still report the rest.
async fn to_rabbitmq() {
    let platform = Platform::new().await.unwrap();
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    scheduler.ready().await;
    let proxy = Proxy::before(platform.amqp_url()).await.unwrap();
    let url = proxy.url(platform.amqp_url());
    let status = async || {
        let begun = Instant::now();
        let output = platform.sexton_with(&[("AMQP_URL", &url)], &["--json", "status"]).await;
        assert!(begun.elapsed() < COMES_BACK, "sexton status took {:?}", begun.elapsed());
        assert!(output.status.success(), "{output}");
        let answer: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(answer["instances"][0]["name"], "s1", "{answer}");
        answer["broker"].clone()
    };

    proxy.cut();
    let cut = status().await;
    assert_eq!(cut["reachable"], false);
    assert!(cut["error"].as_str().unwrap().contains("check AMQP_URL"), "{cut}");
    proxy.delay(DELAY);
    let slow = status().await;
    assert_eq!((&slow["reachable"], &slow["failed_ready"]), (&true.into(), &0.into()), "{slow}");
    proxy.black_hole();
    let silent = status().await;
    assert_eq!(silent["reachable"], false);
    assert!(silent["error"].as_str().unwrap().contains("check AMQP_URL"), "{silent}");
}
