//! Spending: acknowledgements of several messages at a time.

use std::time::Duration;

use futures_util::FutureExt as _;
use sexton_broker::{AckOutcome, Delivery, Link, SlotConsumer};
use sexton_tests::namespace::TestNamespace;
use tokio::time::sleep;

use super::{id, publish, receive, within};

const IDS: [&str; 20] = [
    "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17",
    "18", "19", "20",
];

/// The broker keeps back as many messages as are not acknowledged beyond the prefetch.
async fn ready(link: &Link, ns: &TestNamespace, wanted: u32) {
    within("the acknowledgement", async {
        while link.depth(&ns.main()).await.unwrap().ready != wanted {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// Asserts that exactly these messages come again on another connection once this one has ended, in any order.
///
/// The broker gives them back a moment after the end, and not necessarily in one step.
async fn assert_left(ns: &TestNamespace, link: Link, expected: &[&str]) {
    link.close().await;
    let link = ns.link().await;
    ready(&link, ns, u32::try_from(expected.len()).unwrap()).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 1);
    let mut left = Vec::new();
    for _ in expected {
        let delivery = receive(&mut slot).await;
        left.push(id(&delivery).to_owned());
        assert_eq!(delivery.ack().await, AckOutcome::Written);
    }
    left.sort_by_key(|id| id.parse::<u32>().unwrap());
    assert_eq!(left, expected);
}

/// Takes so many, and spends each before it takes the next, as a slot does.
async fn spend(slot: &mut SlotConsumer, count: usize) {
    for _ in 0..count {
        let delivery = receive(slot).await;
        slot.ack_batched(delivery).await;
    }
}

/// As many are here as the slot may hold: then the next is at hand whenever it asks.
async fn filled(slot: &mut SlotConsumer, link: &Link, ns: &TestNamespace, left: u32) -> Delivery {
    let first = receive(slot).await;
    ready(link, ns, left).await;
    first
}

/// A slot that may hold `prefetch` of the messages acknowledges `together` of them at once, and none before.
async fn acknowledges(prefetch: u16, together: usize) {
    const MORE: u16 = 4;
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let ids: Vec<String> = (1..=prefetch + MORE).map(|id| id.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    publish(&link, &ns.main(), &ids).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), prefetch);
    let first = filled(&mut slot, &link, &ns, MORE.into()).await;
    slot.ack_batched(first).await;
    spend(&mut slot, together - 2).await;
    let last = receive(&mut slot).await;
    // Nothing was acknowledged, so the broker has sent no more than the slot may hold.
    assert_eq!(link.depth(&ns.main()).await.unwrap().ready, u32::from(MORE));
    slot.ack_batched(last).await;
    ready(&link, &ns, u32::from(MORE).saturating_sub(together as u32)).await;
    assert_left(&ns, link, &ids[together..]).await;
}

#[tokio::test]
async fn a_quarter_of_what_a_slot_holds_is_acknowledged_at_once() {
    acknowledges(16, 4).await;
}

#[tokio::test]
async fn more_than_eight_are_never_acknowledged_together() {
    acknowledges(40, 8).await;
}

#[tokio::test]
async fn a_waiting_slot_has_no_pending_acknowledgement() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &IDS[..3]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 16);
    spend(&mut slot, 2).await;
    let _third = receive(&mut slot).await;
    // Once, as a slot that waits does: there is nothing to deliver.
    assert!(slot.next().now_or_never().is_none());
    assert_left(&ns, link, &["3"]).await;
}

#[tokio::test]
async fn a_suspended_slot_has_no_pending_acknowledgement() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &IDS).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 16);
    let first = filled(&mut slot, &link, &ns, 4).await;
    slot.ack_batched(first).await;
    spend(&mut slot, 1).await;
    let _third = receive(&mut slot).await;
    slot.suspend().await;
    assert_left(&ns, link, &IDS[2..]).await;
}

#[tokio::test]
async fn a_suspended_slot_acknowledges_spent_messages_before_it_consumes_again() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &IDS[..2]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 16);
    let first = receive(&mut slot).await;
    slot.suspend().await;
    slot.ack_batched(first).await;
    let _second = receive(&mut slot).await;
    assert_left(&ns, link, &IDS[1..2]).await;
}

/// The broker closes the channel over an acknowledgement of what another has covered, and gives back what was on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledgement_on_its_way_is_not_overtaken() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let ids: Vec<String> = (1..=100).map(|id| id.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    publish(&link, &ns.main(), &ids).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 8);
    // A worker's slot is a task of the runtime as well.
    let spending = tokio::spawn(async move {
        for round in 1..=40 {
            let first = receive(&mut slot).await;
            assert!(!first.redelivered);
            slot.ack_batched(first).await;
            let second = receive(&mut slot).await;
            sleep(Duration::from_millis(51)).await;
            // As when the task ends while the first is being acknowledged.
            assert!(slot.flush_acks_when_due().now_or_never().is_none());
            slot.ack_batched(second).await;
            tokio::select! {
                never = slot.flush_acks_when_due() => match never {},
                () = ready(&link, &ns, 92 - 2 * round) => {}
            }
        }
    });
    spending.await.unwrap();
}

#[tokio::test]
async fn spent_messages_are_acknowledged_while_a_task_runs() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &IDS[..10]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 8);
    let first = filled(&mut slot, &link, &ns, 2).await;
    slot.ack_batched(first).await;
    let second = receive(&mut slot).await;
    assert_eq!(link.depth(&ns.main()).await.unwrap().ready, 2);
    tokio::select! {
        never = slot.flush_acks_when_due() => match never {},
        () = ready(&link, &ns, 1) => {}
    }
    slot.ack_batched(second).await;
    let third = receive(&mut slot).await;
    // Dropped at any point it acknowledges nothing twice, which would cost the channel.
    for _ in 0..200 {
        tokio::select! {
            biased;
            never = slot.flush_acks_when_due() => match never {},
            () = sleep(Duration::from_millis(1)) => {}
        }
    }
    ready(&link, &ns, 0).await;
    assert_eq!(third.ack().await, AckOutcome::Written);
    assert_left(&ns, link, &IDS[3..10]).await;
}

#[tokio::test]
async fn a_dropped_message_is_not_acknowledged_with_another() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &IDS[..8]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 32);
    spend(&mut slot, 1).await;
    drop(receive(&mut slot).await);
    spend(&mut slot, 5).await;
    slot.suspend().await;
    assert_left(&ns, link, &["2", "8"]).await;
}

#[tokio::test]
async fn a_held_message_is_not_acknowledged_with_another() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &IDS[..8]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 32);
    spend(&mut slot, 1).await;
    let held = receive(&mut slot).await;
    spend(&mut slot, 5).await;
    slot.suspend().await;
    assert_left(&ns, link, &["2", "8"]).await;
    assert_eq!(held.ack().await, AckOutcome::ChannelGone);
}

#[tokio::test]
async fn a_message_returned_between_two_spent_messages_is_redelivered() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &IDS[..6]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 32);
    spend(&mut slot, 1).await;
    assert_eq!(receive(&mut slot).await.nack_requeue().await, AckOutcome::Written);
    let mut seen = Vec::new();
    for _ in 2..=6 {
        let delivery = receive(&mut slot).await;
        seen.push(id(&delivery).to_owned());
        if seen.len() == 5 {
            // It came again behind those that were on their way.
            assert!(delivery.redelivered);
            drop(delivery);
        } else {
            slot.ack_batched(delivery).await;
        }
    }
    assert_eq!(seen, ["3", "4", "5", "6", "2"]);
    slot.suspend().await;
    assert_left(&ns, link, &["2"]).await;
}
