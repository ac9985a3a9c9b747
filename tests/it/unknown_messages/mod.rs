//! Messages of the failed queue that no row knows: seen by the real sweep, looked at and dealt with by
//! the real `sexton`.
//!
//! Method: the sweep is stepped by itself between commands, so that what each leaves is seen. A crash
//! between two effects is the first effect without the second.

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

mod commands;
mod lost_attempts;
mod parked_log;
mod sweep;

use std::sync::Arc;

use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, QueuePurgeOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use serde_json::Value;
use sexton_broker::names::failed_queue;
use sexton_broker::publish::DEFAULT_LANES;
use sexton_broker::{Endpoint, Link, LinkSettings, PoolName, Publisher, Timeouts};
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_scheduler::sweep::{Sweep, SweepReport, Tally};
use sexton_store::Store;
use sexton_store::unknown_messages::{Capacity, MAX_STORED};
use sexton_tests::platform::{CommandOutput, Platform};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A platform whose sweep is stepped.
struct Stage {
    platform: Platform,
    link: Link,
    publisher: Publisher,
    channel: Channel,
    _connection: Connection,
}

impl Stage {
    async fn new() -> Self {
        let platform = Platform::new().await.unwrap();
        let link = Link::start(LinkSettings {
            endpoint: Endpoint::parse(platform.amqp_url()).unwrap(),
            name: "test".to_owned(),
            namespace: platform.namespace().clone(),
            pools: vec![PoolName::default_pool()],
            timeouts: Timeouts::default(),
        });
        assert!(link.up().await.is_some());
        let publisher = Publisher::start(&link, DEFAULT_LANES);
        let properties = ConnectionProperties::default();
        let connection = Connection::connect(platform.amqp_url(), properties).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        Self { platform, link, publisher, channel, _connection: connection }
    }

    fn store(&self) -> Store {
        self.platform.store().clone()
    }

    fn queue(&self) -> String {
        failed_queue(self.platform.namespace())
    }

    /// Puts a message into the failed queue, as a tool would.
    async fn put(&self, body: &[u8], properties: BasicProperties) {
        let (queue, options) = (self.queue(), BasicPublishOptions::default());
        let properties = properties.with_delivery_mode(2);
        let sent = self.channel.basic_publish("".into(), queue.into(), options, body, properties);
        sent.await.unwrap().await.unwrap();
    }

    /// As a hand that takes the message out of the queue.
    async fn take(&self) {
        let options = BasicGetOptions::default();
        let taken = self.channel.basic_get(self.queue().into(), options).await.unwrap().unwrap();
        taken.delivery.acker.ack(BasicAckOptions::default()).await.unwrap();
    }

    async fn purge(&self) {
        let options = QueuePurgeOptions::default();
        self.channel.queue_purge(self.queue().into(), options).await.unwrap();
    }

    /// A scheduler's sweep, begun anew: it has not made a pass.
    fn sweep(&self) -> Sweep {
        self.sweep_until(CancellationToken::new())
    }

    fn sweep_until(&self, stop: CancellationToken) -> Sweep {
        let (link, publisher) = (self.link.clone(), self.publisher.clone());
        Sweep::new(self.store(), link, publisher, Arc::default(), stop)
    }

    /// A pass that must have been made.
    async fn pass(&self) -> Tally {
        self.pass_within(MAX_STORED).await
    }

    /// The same with such a limit to what is written down.
    async fn pass_within(&self, limit: Capacity) -> Tally {
        pass_of(&self.sweep().with_unknown_limit(limit)).await
    }

    /// A pass that breaks off before it takes a message, since its scheduler stops.
    async fn pass_broken_off(&self) -> Tally {
        let stop = CancellationToken::new();
        stop.cancel();
        pass_of(&self.sweep_until(stop)).await
    }

    async fn ready(&self) -> u32 {
        self.link.depth(&self.queue()).await.unwrap().ready
    }

    /// The bodies in the failed queue, which is as before then but for their order.
    async fn bodies(&self) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        for _ in 0..self.ready().await {
            let options = BasicGetOptions::default();
            let taken = self.channel.basic_get(self.queue().into(), options).await.unwrap();
            let delivery = taken.unwrap().delivery;
            bodies.push(delivery.data.clone());
            self.put(&delivery.data, delivery.properties.clone()).await;
            delivery.acker.ack(BasicAckOptions::default()).await.unwrap();
        }
        bodies.sort();
        bodies
    }

    async fn command(&self, args: &[&str]) -> CommandOutput {
        self.platform.sexton(&[&["unknown"], args].concat()).await
    }

    /// The messages that `list` knows.
    async fn listed(&self, args: &[&str]) -> Vec<Value> {
        let list = self.platform.sexton_items(&[&["unknown", "list"], args].concat()).await;
        list.as_array().unwrap().clone()
    }

    /// The id of the one message that is listed.
    async fn id(&self) -> String {
        let listed = self.listed(&[]).await;
        assert_eq!(listed.len(), 1, "{listed:?}");
        listed[0]["id"].as_str().unwrap().to_owned()
    }

    /// Its state in the list of all.
    async fn state(&self, id: &str) -> String {
        let listed = self.listed(&["--all"]).await;
        let one = listed.iter().find(|one| one["id"] == id).unwrap();
        one["state"].as_str().unwrap().to_owned()
    }

    async fn discard(&self, id: &str) {
        let done = self.command(&["discard", id, "--reason", "rubbish", "--yes"]).await;
        assert!(done.status.success(), "{done}");
    }

    async fn count_actions(&self, action: &str) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM sexton.operator_actions WHERE action = $1")
            .bind(action)
            .fetch_one(self.platform.store().pool())
            .await
            .unwrap()
    }
}

async fn pass_of(sweep: &Sweep) -> Tally {
    match sweep.run_once(None).await.unwrap() {
        SweepReport::Pass(tally) => tally,
        other => panic!("there was cause for a pass: {other:?}"),
    }
}

/// The properties of a ticket of an execution that there is no row of.
fn unknown_properties(id: Uuid) -> BasicProperties {
    let mut headers = FieldTable::default();
    headers.insert("sexton-attempt".into(), AMQPValue::LongLongInt(2));
    BasicProperties::default().with_message_id(id.to_string().into()).with_headers(headers)
}
