//! RabbitMQ as `sexton-broker` uses it, against a real server.
//!
//! Goal: every known pitfall of the broker and of its client library that can be shown without
//! stopping a server stays closed. Method: a namespace per test; the tests wait for deliveries,
//! confirms and states, each with a deadline.

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

use std::time::Duration;

use lapin::options::QueueDeleteOptions;
use sexton_broker::{Delivery, Link, Properties, Publication, Publisher, SlotConsumer};
use sexton_tests::namespace::Raw;
use tokio::time::timeout;

mod ack_batch;
mod consuming;
mod delays;
mod deleted_queues;
mod failed;
mod publishing;
mod reconnecting;
mod topology;
mod unresponsive_broker;

/// Long enough for a loaded machine, short enough to fail by.
const DEADLINE: Duration = Duration::from_secs(20);

async fn within<T>(what: &str, doing: impl Future<Output = T>) -> T {
    timeout(DEADLINE, doing).await.unwrap_or_else(|_| panic!("{what}: not within {DEADLINE:?}"))
}

fn ticket(queue: &str, id: &str) -> Publication {
    let properties = Properties {
        message_id: Some(id.to_owned()),
        kind: Some("report".to_owned()),
        attempt: Some(1),
        ..Properties::default()
    };
    Publication::new(queue, id.as_bytes().to_vec(), properties)
}

async fn publish(link: &Link, queue: &str, ids: &[&str]) {
    let publisher = Publisher::start(link, 1);
    for id in ids {
        publisher.publish_one(ticket(queue, id)).await.unwrap();
    }
}

async fn receive(slot: &mut SlotConsumer) -> Delivery {
    within("a delivery", slot.next()).await.expect("the link is open")
}

fn id(delivery: &Delivery) -> &str {
    delivery.properties.message_id.as_deref().unwrap_or("none")
}

async fn delete_queue(raw: &Raw, queue: &str) {
    raw.channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await.unwrap();
}
