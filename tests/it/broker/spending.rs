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

/// What comes again on another connection, after this one has ended; in whatever order.
async fn left(ns: &TestNamespace, link: Link) -> Vec<String> {
    link.close().await;
    let link = ns.link().await;
    let count = link.depth(&ns.main()).await.unwrap().ready;
    let mut slot = SlotConsumer::new(&link, ns.main(), 1);
    let mut left = Vec::new();
    for _ in 0..count {
        let delivery = receive(&mut slot).await;
        left.push(id(&delivery).to_owned());
        assert_eq!(delivery.ack().await, AckOutcome::Written);
    }
    left.sort_by_key(|id| id.parse::<u32>().unwrap());
    left
}

/// Takes so many, and spends each before it takes the next, as a slot does.
async fn spend(slot: &mut SlotConsumer, count: usize) {
    for _ in 0..count {
        let delivery = receive(slot).await;
        slot.spend(delivery).await;
    }
}

/// As many are here as the slot may hold: then the next is at hand whenever it asks.
async fn filled(slot: &mut SlotConsumer, link: &Link, ns: &TestNamespace, left: u32) -> Delivery {
    let first = receive(slot).await;
    ready(link, ns, left).await;
    first
}

#[tokio::test]
async fn a_quarter_of_what_a_slot_holds_is_acknowledged_at_once() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &IDS).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 16);
    let first = filled(&mut slot, &link, &ns, 4).await;
    slot.spend(first).await;
    spend(&mut slot, 2).await;
    let fourth = receive(&mut slot).await;
    // Nothing was acknowledged, so the broker has sent no more than the sixteen.
    assert_eq!(link.depth(&ns.main()).await.unwrap().ready, 4);
    slot.spend(fourth).await;
    ready(&link, &ns, 0).await;
    assert_eq!(left(&ns, link).await, IDS[4..]);
}

#[tokio::test]
async fn a_slot_that_waits_owes_no_acknowledgement() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &IDS[..2]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 16);
    spend(&mut slot, 2).await;
    // Once, as a slot that waits does: there is nothing to deliver.
    assert!(slot.next().now_or_never().is_none());
    assert_eq!(left(&ns, link).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_suspended_slot_owes_no_acknowledgement() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &IDS[..2]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 16);
    spend(&mut slot, 2).await;
    slot.suspend().await;
    assert_eq!(left(&ns, link).await, Vec::<String>::new());
}

#[tokio::test]
async fn while_a_task_runs_what_is_spent_is_acknowledged_all_the_same() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &IDS[..10]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 8);
    let first = filled(&mut slot, &link, &ns, 2).await;
    slot.spend(first).await;
    let second = receive(&mut slot).await;
    assert_eq!(link.depth(&ns.main()).await.unwrap().ready, 2);
    tokio::select! {
        never = slot.in_time() => match never {},
        () = ready(&link, &ns, 1) => {}
    }
    slot.spend(second).await;
    let third = receive(&mut slot).await;
    // Dropped at any point it acknowledges nothing twice, which would cost the channel.
    for _ in 0..200 {
        tokio::select! {
            biased;
            never = slot.in_time() => match never {},
            () = sleep(Duration::from_millis(1)) => {}
        }
    }
    ready(&link, &ns, 0).await;
    assert_eq!(third.ack().await, AckOutcome::Written);
    assert_eq!(left(&ns, link).await, IDS[3..10]);
}

#[tokio::test]
async fn a_message_that_was_dropped_without_an_answer_is_acknowledged_with_no_other() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &IDS[..8]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 32);
    spend(&mut slot, 1).await;
    drop(receive(&mut slot).await);
    spend(&mut slot, 5).await;
    slot.suspend().await;
    assert_eq!(left(&ns, link).await, ["2", "8"]);
}

#[tokio::test]
async fn a_message_that_is_still_held_is_acknowledged_with_no_other() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &IDS[..8]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 32);
    spend(&mut slot, 1).await;
    let held = receive(&mut slot).await;
    spend(&mut slot, 5).await;
    slot.suspend().await;
    assert_eq!(left(&ns, link).await, ["2", "8"]);
    assert_eq!(held.ack().await, AckOutcome::ChannelGone);
}

#[tokio::test]
async fn what_is_given_back_between_two_spent_messages_comes_again() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    publish(&link, &ns.main(), &IDS[..6]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 32);
    spend(&mut slot, 1).await;
    assert_eq!(receive(&mut slot).await.give_back().await, AckOutcome::Written);
    let mut seen = Vec::new();
    for _ in 2..=6 {
        let delivery = receive(&mut slot).await;
        seen.push(id(&delivery).to_owned());
        if seen.len() == 5 {
            // It came again behind those that were on their way.
            assert!(delivery.redelivered);
            drop(delivery);
        } else {
            slot.spend(delivery).await;
        }
    }
    assert_eq!(seen, ["3", "4", "5", "6", "2"]);
    assert_eq!(left(&ns, link).await, ["2"]);
}
