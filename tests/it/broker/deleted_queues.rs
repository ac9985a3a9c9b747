//! A slot survives the deletion of its queue, with and without a notice from the broker.

use std::time::Duration;

use lapin::options::QueueDeclareOptions;
use sexton_broker::{
    AckOutcome, InspectError, Link, PublishError, Publisher, SlotConsumer, Timeouts, topology,
};
use sexton_tests::namespace::TestNamespace;

use super::{delete_queue, id, publish, receive, ticket, within};

/// A slot that has proved that it consumes.
async fn consuming(ns: &TestNamespace, link: &Link) -> SlotConsumer {
    let mut slot = SlotConsumer::new(link, ns.main(), 1);
    publish(link, &ns.main(), &["warm-up"]).await;
    assert_eq!(receive(&mut slot).await.ack().await, AckOutcome::Written);
    slot
}

#[tokio::test]
async fn a_slot_whose_queue_is_deleted_declares_it_and_consumes_again() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let mut slot = consuming(&ns, &link).await;
    delete_queue(&ns.raw().await, &ns.main()).await;
    let waiting = tokio::spawn(async move {
        let delivery = slot.next().await.unwrap();
        id(&delivery).to_owned()
    });
    // Only the slot declares it again here.
    within("the queue", async {
        while let Err(InspectError::Missing(_)) = link.depth(&ns.main()).await {}
    })
    .await;
    // RabbitMQ 3.10 shows a queue before it is complete, and refuses messages at that moment; the
    // relay would publish again.
    let publisher = Publisher::start(&link, 1);
    within("the publication", async {
        while let Err(error) = publisher.publish_one(ticket(&ns.main(), "again")).await {
            assert!(matches!(error, PublishError::Refused { .. }), "{error}");
        }
    })
    .await;
    assert_eq!(within("the delivery", waiting).await.unwrap(), "again");
}

/// The broker notifies nobody and counts a consumer that it does not serve: without the watchdog
/// this waits for ever.
#[tokio::test]
async fn a_slot_whose_queue_is_deleted_and_recreated_notices_by_itself() {
    let idle_check = Duration::from_millis(200);
    let ns = TestNamespace::new().with_timeouts(Timeouts { idle_check, ..Timeouts::default() });
    let link = ns.link().await;
    let mut slot = consuming(&ns, &link).await;
    let raw = ns.raw().await;
    delete_queue(&raw, &ns.main()).await;
    let options = QueueDeclareOptions::durable();
    let arguments = topology::main_arguments(ns.namespace());
    raw.channel.queue_declare((*ns.main()).into(), options, arguments).await.unwrap();
    publish(&link, &ns.main(), &["haunted"]).await;
    publish(&link, &ns.main(), &["second"]).await;
    assert!(["haunted", "second"].contains(&id(&receive(&mut slot).await)));
}

#[tokio::test]
async fn the_watchdog_leaves_a_slot_with_unacknowledged_messages_alone() {
    let idle_check = Duration::from_millis(50);
    let ns = TestNamespace::new().with_timeouts(Timeouts { idle_check, ..Timeouts::default() });
    let link = ns.link().await;
    publish(&link, &ns.main(), &["held", "waiting"]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 1);
    let held = receive(&mut slot).await;
    // Messages are ready and the slot receives none for many checks, as long as it holds its delivery.
    let silent = tokio::time::timeout(Duration::from_millis(1_500), slot.next()).await;
    assert!(silent.is_err(), "a prefetch of one was exceeded by a rebuilt channel");
    assert_eq!(held.ack().await, AckOutcome::Written);
    assert_eq!(id(&receive(&mut slot).await), "waiting");
}

#[tokio::test]
async fn a_question_about_a_missing_queue_does_not_spoil_the_next_one() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let missing = format!("{}-missing", ns.namespace());
    for _ in 0..3 {
        assert_eq!(link.depth(&missing).await, Err(InspectError::Missing(missing.clone())));
        assert_eq!(link.depth(&ns.main()).await.unwrap().ready, 0);
    }
}
