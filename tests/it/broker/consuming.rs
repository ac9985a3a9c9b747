//! Consuming: what a slot holds, gives back and gets again.

use sexton_broker::{AckOutcome, PoolName, SlotConsumer, names};
use sexton_tests::namespace::TestNamespace;
use tokio_util::task::TaskTracker;

use super::{id, publish, receive, within};

#[tokio::test]
async fn two_slots_with_a_prefetch_of_one_hold_one_message_each() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &["a", "b", "c"]).await;
    let mut slots = [1, 2].map(|_| SlotConsumer::new(&link, ns.main(), 1));
    let first = receive(&mut slots[0]).await;
    let second = receive(&mut slots[1]).await;
    assert_ne!(id(&first), id(&second));
    assert_eq!(link.depth(&ns.main()).await.unwrap().ready, 1);
    assert_eq!(first.ack().await, AckOutcome::Written);
    assert_eq!(id(&receive(&mut slots[0]).await), "c");
    assert_eq!(second.ack().await, AckOutcome::Written);
}

#[tokio::test]
async fn a_returned_message_is_redelivered_at_the_head() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &["a", "b"]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 1);
    assert_eq!(receive(&mut slot).await.nack_requeue().await, AckOutcome::Written);
    let again = receive(&mut slot).await;
    assert_eq!((id(&again), again.redelivered), ("a", true));
}

/// `next` sits in a `select!` whose other branch wins thousands of times, from before the consumer
/// exists until the last message.
#[tokio::test]
async fn dropping_next_at_any_point_loses_and_doubles_nothing() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let ids: Vec<_> = (0..200).map(|n| n.to_string()).collect();
    let borrowed: Vec<_> = ids.iter().map(String::as_str).collect();
    publish(&link, &ns.main(), &borrowed).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 5);
    let mut seen = Vec::new();
    let mut dropped = 0_u32;
    within("all messages", async {
        while seen.len() < ids.len() {
            tokio::select! {
                delivery = slot.next() => {
                    let delivery = delivery.unwrap();
                    assert!(!delivery.redelivered);
                    seen.push(id(&delivery).to_owned());
                    let _ = delivery.ack().await;
                }
                () = tokio::task::yield_now() => dropped += 1,
            }
        }
    })
    .await;
    assert_eq!(seen, ids);
    assert!(dropped > 10, "next was dropped only {dropped} times");
}

#[tokio::test]
async fn a_suspended_slot_gives_back_what_it_has_not_returned_and_can_ack_what_it_holds() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &["held", "buffered"]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 2);
    let held = receive(&mut slot).await;
    slot.suspend().await;
    slot.suspend().await;

    let mut other = SlotConsumer::new(&link, ns.main(), 1);
    let buffered = receive(&mut other).await;
    assert_eq!((id(&held), id(&buffered)), ("held", "buffered"));
    assert_eq!(buffered.ack().await, AckOutcome::Written);
    publish(&link, &ns.main(), &["next"]).await;
    let next = receive(&mut other).await;
    assert_eq!(id(&next), "next");

    assert_eq!(held.ack().await, AckOutcome::Written);
    drop(other);
    assert_eq!(next.nack_requeue().await, AckOutcome::Written);
    assert_eq!(id(&receive(&mut slot).await), "next", "the slot consumes again");
}

#[tokio::test]
async fn a_slot_suspended_before_its_first_message_consumes_later() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &["a"]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 1);
    slot.suspend().await;
    // Begin to set the consumer up, and suspend in the middle of that.
    tokio::select! {
        biased;
        _ = slot.next() => panic!("a delivery in no time"),
        () = std::future::ready(()) => {}
    }
    slot.suspend().await;
    assert_eq!(link.depth(&ns.main()).await.unwrap().consumers, 0);
    assert_eq!(id(&receive(&mut slot).await), "a");
}

#[tokio::test]
async fn a_delivery_outlives_its_slot() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &["a"]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 1);
    let delivery = receive(&mut slot).await;
    drop(slot);
    assert_eq!(delivery.ack().await, AckOutcome::Written);
    publish(&link, &ns.main(), &["b"]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 1);
    assert_eq!(id(&receive(&mut slot).await), "b");
}

#[tokio::test]
async fn a_closed_link_ends_its_slots_and_what_they_held_comes_again() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &["a"]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 1);
    let held = receive(&mut slot).await;
    let waiting = TaskTracker::new();
    let ended = waiting.spawn(async move { slot.next().await.is_none() });
    link.close().await;
    assert!(within("the end of the slot", ended).await.unwrap());
    assert_eq!(held.ack().await, AckOutcome::ChannelGone);

    let link = ns.link().await;
    let again = receive(&mut SlotConsumer::new(&link, ns.main(), 1)).await;
    assert_eq!((id(&again), again.redelivered), ("a", true));
}

#[tokio::test]
async fn pools_have_queues_of_their_own() {
    let batch = PoolName::new("batch").unwrap();
    let ns = TestNamespace::new().with_pool(batch.clone());
    let link = ns.link().await;
    let queue = names::main_queue(ns.namespace(), &batch);
    publish(&link, &queue, &["batch"]).await;
    publish(&link, &ns.main(), &["default"]).await;
    assert_eq!(id(&receive(&mut SlotConsumer::new(&link, queue, 1)).await), "batch");
    assert_eq!(id(&receive(&mut SlotConsumer::new(&link, ns.main(), 1)).await), "default");
}
