//! The cursor over the failed queue: each message once, nothing lost, nothing poisonous kept.

use lapin::BasicProperties;
use lapin::options::{BasicGetOptions, BasicPublishOptions};
use lapin::types::{AMQPValue, FieldArray, FieldTable};
use sexton_broker::publish::{DEFAULT_LANES, MAX_ORDERED_BATCH};
use sexton_broker::{
    AckOutcome, Endpoint, FailedQueue, Link, ParkedMessage, Properties, Publication, PublishError,
    Publisher, SlotConsumer,
};
use sexton_tests::namespace::{Raw, TestNamespace};

use super::{id, publish, receive, within};

async fn pass(link: &Link) -> FailedQueue {
    FailedQueue::open(link, &Publisher::start(link, 1)).await.unwrap()
}

/// The next message, by itself.
async fn next(failed: &mut FailedQueue) -> Option<ParkedMessage> {
    failed.take(1).await.unwrap().pop()
}

/// Leaves messages in the queue, as the sweep does.
async fn keep(failed: &FailedQueue, parked: Vec<ParkedMessage>) -> AckOutcome {
    let count = parked.len();
    let (copied, failure) = failed.copy_to_tail(parked).await;
    assert_eq!((copied.len(), failure), (count, None));
    failed.drop_originals(copied).await
}

fn ids(parked: &[ParkedMessage]) -> Vec<&str> {
    parked.iter().map(|one| id(&one.delivery)).collect()
}

#[tokio::test]
async fn a_pass_takes_each_message_once_and_ends() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.failed(), &["a", "b", "c"]).await;
    let mut failed = pass(&link).await;
    assert_eq!(failed.left(), 3);
    let mut seen = Vec::new();
    while let Some(parked) = next(&mut failed).await {
        seen.push(id(&parked.delivery).to_owned());
        let outcome = if seen.len() == 2 {
            failed.remove(vec![parked]).await
        } else {
            keep(&failed, vec![parked]).await
        };
        assert_eq!(outcome, AckOutcome::Written);
    }
    assert_eq!(seen, ["a", "b", "c"]);
    let mut slot = SlotConsumer::new(&link, ns.failed(), 2);
    let rest = [receive(&mut slot).await, receive(&mut slot).await];
    assert_eq!(rest.each_ref().map(id), ["a", "c"]);
    assert!(!rest[0].redelivered, "a kept message is a copy");
}

#[tokio::test]
async fn a_message_parked_during_a_pass_is_for_the_next_one() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.failed(), &["a"]).await;
    let mut failed = pass(&link).await;
    publish(&link, &ns.failed(), &["late"]).await;
    let parked = failed.take(9).await.unwrap();
    assert_eq!(ids(&parked), ["a"]);
    let _ = keep(&failed, parked).await;
    assert!(next(&mut failed).await.is_none());
}

#[tokio::test]
async fn messages_taken_together_keep_their_order() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let all: Vec<String> = (0..150).map(|number| number.to_string()).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    publish(&link, &ns.failed(), &all).await;
    // With the lanes that programs have: of one batch they make no two.
    for _ in 0..2 {
        let mut failed =
            FailedQueue::open(&link, &Publisher::start(&link, DEFAULT_LANES)).await.unwrap();
        let mut seen = Vec::new();
        loop {
            let parked = failed.take(MAX_ORDERED_BATCH).await.unwrap();
            if parked.is_empty() {
                break;
            }
            assert!(parked.len() == MAX_ORDERED_BATCH || failed.left() == 0, "{}", parked.len());
            seen.extend(ids(&parked).into_iter().map(str::to_owned));
            assert_eq!(keep(&failed, parked).await, AckOutcome::Written);
        }
        assert_eq!(seen, all);
    }
}

#[tokio::test]
async fn a_pass_holds_few_long_messages_at_a_time() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let publisher = Publisher::start(&link, 1);
    let body = vec![b'x'; 700 * 1024];
    for _ in 0..7 {
        let message = Publication::new(ns.failed(), body.clone(), Properties::default());
        publisher.publish_one(message).await.unwrap();
    }
    let mut failed = pass(&link).await;
    let mut taken = Vec::new();
    while failed.left() > 0 {
        let parked = failed.take(MAX_ORDERED_BATCH).await.unwrap();
        taken.push(parked.len());
        let _ = keep(&failed, parked).await;
    }
    assert_eq!(taken, [2, 2, 2, 1], "of 2 MiB");
}

/// An original is acknowledged only when its copy is confirmed.
#[tokio::test]
async fn a_message_that_cannot_be_copied_stays_in_the_queue() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.failed(), &["a", "b", "c"]).await;
    let mut failed = pass(&link).await;
    let mut parked = failed.take(3).await.unwrap();
    // No short string of the protocol is so long.
    parked[1].delivery.properties.kind = Some("x".repeat(256));
    let (copied, failure) = failed.copy_to_tail(parked).await;
    assert_eq!(copied.len(), 2);
    assert!(matches!(failure, Some(PublishError::TooLarge { .. })), "{failure:?}");
    let _ = failed.drop_originals(copied).await;
    drop(failed);
    let mut slot = SlotConsumer::new(&link, ns.failed(), 3);
    let mut left = Vec::new();
    for _ in 0..3 {
        left.push(id(&receive(&mut slot).await).to_owned());
    }
    left.sort();
    assert_eq!(left, ["a", "b", "c"]);
}

/// From RabbitMQ 4 on a queue without a limit of its own drops a message after 20 of these.
#[tokio::test]
async fn thirty_abandoned_passes_neither_lose_nor_reorder() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.failed(), &["a", "b"]).await;
    for _ in 0..30 {
        // What the abandoned pass before held comes back with the end of its channel.
        let mut failed = within("both messages", async {
            loop {
                let failed = pass(&link).await;
                if failed.left() == 2 {
                    break failed;
                }
            }
        })
        .await;
        assert_eq!(id(&next(&mut failed).await.unwrap().delivery), "a");
    }
    let mut slot = SlotConsumer::new(&link, ns.failed(), 2);
    assert_eq!(id(&receive(&mut slot).await), "a");
}

async fn publish_poisoned(ns: &TestNamespace, raw: &Raw) {
    let mut death = FieldTable::default();
    death.insert("queue".into(), AMQPValue::LongString((*ns.main()).into()));
    death.insert("reason".into(), AMQPValue::LongString("delivery_limit".into()));
    death.insert("count".into(), AMQPValue::LongLongInt(1));
    let deaths = FieldArray::from(vec![AMQPValue::FieldTable(death)]);
    let mut headers = FieldTable::default();
    headers.insert("x-death".into(), AMQPValue::FieldArray(deaths));
    headers.insert("CC".into(), AMQPValue::FieldArray(FieldArray::default()));
    headers.insert("x-delivery-count".into(), AMQPValue::LongLongInt(9));
    headers.insert("sexton-attempt".into(), AMQPValue::LongLongInt(3));
    let user = Endpoint::parse(ns.url()).unwrap().user().to_owned();
    let properties = BasicProperties::default()
        .with_headers(headers)
        .with_message_id("poisoned".into())
        .with_user_id(user.into())
        .with_expiration("3600000".into())
        .with_delivery_mode(2);
    let options = BasicPublishOptions::default();
    let body = b"\xff not JSON";
    let queue = (*ns.failed()).into();
    raw.channel.basic_publish("".into(), queue, options, body, properties).await.unwrap();
}

#[tokio::test]
async fn a_kept_message_bears_nothing_but_the_allowed_properties() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let raw = ns.raw().await;
    publish_poisoned(&ns, &raw).await;
    let mut failed = within("the message", async {
        loop {
            let failed = pass(&link).await;
            if failed.left() == 1 {
                break failed;
            }
        }
    })
    .await;
    let mut parked = next(&mut failed).await.unwrap();
    assert_eq!(parked.delivery.last_death.as_deref(), Some("delivery_limit"));
    parked.delivery.properties.failed_reason = Some("looked at".to_owned());
    assert_eq!(keep(&failed, vec![parked]).await, AckOutcome::Written);

    let options = BasicGetOptions { no_ack: true };
    let parked = raw.channel.basic_get((*ns.failed()).into(), options).await.unwrap().unwrap();
    let headers = parked.properties.headers().clone().unwrap();
    // The broker adds its own count, 0, to whatever is fetched like this; ours was 9.
    let brokers_own = ("x-delivery-count", AMQPValue::LongLongInt(0));
    let names: Vec<_> = headers
        .inner()
        .iter()
        .filter(|(name, value)| (name.as_str(), *value) != (brokers_own.0, &brokers_own.1))
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["sexton-attempt", "sexton-failed-reason"]);
    assert_eq!((parked.properties.user_id(), parked.properties.expiration()), (&None, &None));
    assert_eq!(parked.data, b"\xff not JSON");
}

/// What is acknowledged over a connection that is gone has not been taken out, and must not pass for it.
#[tokio::test]
async fn a_later_answer_shows_whether_acks_arrived() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.failed(), &["a", "b"]).await;
    let mut failed = pass(&link).await;
    let parked = failed.take(1).await.unwrap();
    let _ = failed.remove(parked).await;
    failed.wait_for_acks().await.unwrap();
    let parked = failed.take(1).await.unwrap();
    link.close().await;
    let _ = failed.remove(parked).await;
    assert!(failed.wait_for_acks().await.is_err(), "nobody has answered");
    let mut slot = SlotConsumer::new(&ns.link().await, ns.failed(), 2);
    assert_eq!(id(&receive(&mut slot).await), "b");
}
