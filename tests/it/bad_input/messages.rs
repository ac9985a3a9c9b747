//! Messages that are not tickets: parked byte for byte with the reason, and the slot continues.

use sexton_tests::platform::Program;
use uuid::Uuid;

use super::probe::{assert_sound, lines_with};
use super::wire::{Message, Wire};
use super::{one_slot, platform, succeeded};

/// A task that the worker can run.
fn good(id: &str) -> Message {
    Message::new(r#"{"type":"report","id":25,"scheduler_id":16,"params_scheduler":"{}"}"#).id(id)
}

/// Sends a bad message and a good one behind it; the worker must park the bad one unchanged with a
/// reason that contains these words, and run the good one.
async fn is_parked(bad: Message, words: &[&str]) {
    let platform = platform().await;
    let worker = one_slot(&platform).await;
    let wire = Wire::connect(&platform).await;
    wire.send(&[bad.clone(), good("behind")]).await;
    succeeded(&platform, "behind").await;
    let parked = wire.parked(&platform, 1).await;
    assert_eq!(parked.len(), 1);
    assert!(parked[0].body == bad.body, "the body was changed");
    let reason = parked[0].reason.as_deref().unwrap();
    for word in words {
        assert!(reason.contains(word), "{word:?} is missing: {reason}");
    }
    assert_eq!(wire.depth(wire.main()).await, 0, "it must not be in its queue, too");
    assert_logged_once(&worker, words);
    assert_sound(&worker);
}

/// Asserts that the log names the reason, too, and only once.
fn assert_logged_once(worker: &Program, words: &[&str]) {
    let log = worker.log();
    let line = log.lines().find(|line| line.contains("parked a message")).unwrap();
    for word in words {
        assert!(line.contains(word), "{word:?} is missing: {line}");
    }
    assert_eq!(lines_with(worker, "parked a message"), 1, "{log}");
}

#[tokio::test]
async fn an_unparseable_message_is_parked_unchanged_and_the_next_task_runs() {
    let bad = Message::new(b"\xff\x00 not JSON".as_slice()).id("its own id");
    is_parked(bad, &["the body is not JSON", "publish"]).await;
}

#[tokio::test]
async fn an_empty_message_is_parked_unchanged_and_the_next_task_runs() {
    is_parked(Message::new(""), &["the body is not JSON", "publish"]).await;
}

#[tokio::test]
async fn a_version_that_the_worker_does_not_know_in_the_header_is_parked() {
    let bad =
        good(&Uuid::new_v4().to_string()).header("sexton-attempt", 1).header("sexton-schema", 99);
    is_parked(bad, &["unknown version 99", "sexton-schema", "reads 1", "upgrade"]).await;
}

#[tokio::test]
async fn a_version_that_the_worker_does_not_know_in_the_body_is_parked() {
    let bad = Message::new(r#"{"v":99,"type":"report"}"#).id("v99");
    is_parked(bad, &["unknown version 99", "body", "reads 1", "upgrade"]).await;
}

#[tokio::test]
async fn a_ticket_of_an_execution_that_does_not_exist_is_parked() {
    let id = Uuid::new_v4().to_string();
    let bad = Message::new(format!(r#"{{"type":"report","execution_id":"{id}","attempt":1}}"#));
    is_parked(bad.id(id).header("sexton-attempt", 1), &["no execution has this id"]).await;
}

#[tokio::test]
async fn params_over_the_limit_in_another_system_s_message_are_parked_with_both_sizes() {
    let body = format!(
        r#"{{"type":"report","params_scheduler":{{"blob":"{}"}}}}"#,
        "x".repeat(256 * 1024)
    );
    is_parked(Message::new(body).id("large"), &["the params have", "more than 262144"]).await;
}

#[tokio::test]
async fn a_foreign_message_with_a_nul_in_its_params_is_parked() {
    let body = r#"{"type":"report","params_scheduler":{"customer":"a\u0000b"}}"#;
    is_parked(Message::new(body).id("nul"), &["U+0000", "database"]).await;
}

#[tokio::test]
async fn a_message_id_that_cannot_be_a_key_is_parked_with_what_is_wrong_with_it() {
    let bad = Message::new(r#"{"type":"report"}"#).id("a\tb");
    is_parked(bad, &["message id", "key"]).await;
}
