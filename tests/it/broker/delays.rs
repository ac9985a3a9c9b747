//! Delay queues: each message reaches the main queue when it should.

use std::time::Duration;

use sexton_broker::{Delivery, FailedQueue, Link, Publication, Publisher, SlotConsumer};
use sexton_model::delay_queues::{NextQueue, next_queue};
use sexton_tests::namespace::TestNamespace;
use tokio::time::Instant;

use super::{id, publish, receive, ticket};

/// Publishes a copy of a delivery to a delay queue, as a retry does.
async fn wait_for(ns: &TestNamespace, link: &Link, delivery: &Delivery, delay: Duration) {
    let NextQueue::Delay { delay_ms, expiration_ms } = next_queue(delay, delay) else {
        panic!("{delay:?} is no delay");
    };
    let mut properties = delivery.properties.clone();
    properties.expiration_ms = expiration_ms;
    let copy = Publication::copy(ns.retry(delay_ms), delivery.body.clone(), properties);
    Publisher::start(link, 1).publish_one(copy).await.unwrap();
}

#[tokio::test]
async fn a_ticket_waits_as_long_as_it_should_and_keeps_its_properties() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &["a"]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 1);
    let first = receive(&mut slot).await;
    let delay = Duration::from_millis(300);
    let begun = Instant::now();
    wait_for(&ns, &link, &first, delay).await;
    let properties = first.properties.clone();
    let _ = first.ack().await;
    let again = receive(&mut slot).await;
    assert!(begun.elapsed() >= delay, "came back after {:?}", begun.elapsed());
    assert_eq!((&again.properties, again.redelivered), (&properties, false));
    assert_eq!(again.last_death.as_deref(), Some("expired"));
}

#[tokio::test]
async fn a_long_delay_does_not_hold_up_a_short_one() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let publisher = Publisher::start(&link, 1);
    publisher.publish_one(ticket(&ns.retry(21_600_000), "hours")).await.unwrap();
    publisher.publish_one(ticket(&ns.retry(1_000), "second")).await.unwrap();
    let delivery = receive(&mut SlotConsumer::new(&link, ns.main(), 1)).await;
    assert_eq!(id(&delivery), "second");
}

/// The silent loss: RabbitMQ drops a message, or holds it for ever, when a delay queue returns it
/// to the main queue and its headers record an earlier dead-lettering out of the main queue.
#[tokio::test]
async fn a_message_parked_by_the_broker_and_moved_back_passes_through_a_delay_queue() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &["crasher"]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 1);
    // A limit of 100 is 101 deliveries.
    for round in 0..=100 {
        let delivery = receive(&mut slot).await;
        assert_eq!(delivery.redelivered, round > 0);
        let _ = delivery.nack_requeue().await;
    }
    let mut parked = SlotConsumer::new(&link, ns.failed(), 1);
    let delivery = receive(&mut parked).await;
    assert_eq!(delivery.last_death.as_deref(), Some("delivery_limit"));
    assert_eq!(delivery.properties.attempt, Some(1));

    wait_for(&ns, &link, &delivery, Duration::from_millis(50)).await;
    let _ = delivery.ack().await;
    let again = receive(&mut slot).await;
    assert_eq!((id(&again), again.last_death.as_deref()), ("crasher", Some("expired")));
    let _ = again.ack().await;

    let publisher = Publisher::start(&link, 1);
    assert_eq!(FailedQueue::open(&link, &publisher).await.unwrap().left(), 0);
}
