//! A queue that exists with other arguments: a program stops with a message, and does not try again.

use lapin::options::{QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use sexton_tests::platform::Program;

use super::wire::Wire;
use super::{DEADLINE, platform};

/// Waits for the program's end, which must come with a message that holds these words, once.
async fn stops(mut program: Program, words: &[&str]) {
    let status = program.exit(DEADLINE).await;
    let log = program.log();
    assert_eq!(status.code(), Some(1), "{log}");
    let messages: Vec<&str> =
        log.lines().filter(|line| line.contains("exists on the broker with")).collect();
    assert_eq!(messages.len(), 1, "logged once and not tried again: {log}");
    for word in words {
        assert!(messages[0].contains(word), "{word:?} is missing: {}", messages[0]);
    }
    assert!(log.lines().count() < 20, "{log}");
    assert!(!log.contains("panicked"), "{log}");
}

#[tokio::test]
async fn a_queue_with_other_arguments_stops_scheduler_and_worker_with_the_way_out() {
    let platform = platform().await;
    let wire = Wire::connect(&platform).await;
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    arguments.insert("x-overflow".into(), AMQPValue::LongString("reject-publish".into()));
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(7));
    let declaring = wire.channel().queue_declare(
        wire.failed().into(),
        QueueDeclareOptions::durable(),
        arguments,
    );
    declaring.await.unwrap();

    let queue = format!("queue {}", wire.failed());
    let words =
        [&*queue, "x-delivery-limit = 7", "1000000 is needed", "namespace", "drain", "delete it"];
    let scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let worker = platform.start_worker("w1", &[]).unwrap();
    stops(scheduler, &words).await;
    stops(worker, &words).await;

    // The way out that the message names.
    let deleting = wire.channel().queue_delete(wire.failed().into(), QueueDeleteOptions::default());
    deleting.await.unwrap();
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = platform.start_worker("w1", &[]).unwrap();
    scheduler.ready().await;
    worker.ready().await;
}
