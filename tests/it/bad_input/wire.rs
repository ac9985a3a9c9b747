//! The broker connection of a client that is not Sexton.

use std::time::Duration;

use lapin::message::BasicGetMessage;
use lapin::options::{
    BasicGetOptions, BasicNackOptions, BasicPublishOptions, ConfirmSelectOptions,
    QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Queue};
use sexton_broker::PoolName;
use sexton_broker::names::{failed_queue, main_queue, retry_queue};
use sexton_tests::platform::Platform;

/// A message to publish.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) body: Vec<u8>,
    id: Option<String>,
    headers: FieldTable,
}

impl Message {
    pub(crate) fn new(body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), id: None, headers: FieldTable::default() }
    }

    /// Sets the property `message_id`.
    pub(crate) fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: i64) -> Self {
        self.headers.insert(name.into(), AMQPValue::LongLongInt(value));
        self
    }

    fn properties(&self) -> BasicProperties {
        let properties =
            BasicProperties::default().with_delivery_mode(2).with_headers(self.headers.clone());
        match &self.id {
            Some(id) => properties.with_message_id(id.as_str().into()),
            None => properties,
        }
    }
}

/// A message that was read from a queue.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) body: Vec<u8>,
    pub(crate) id: Option<String>,
    /// The header `sexton-failed-reason`.
    pub(crate) reason: Option<String>,
    /// The header `sexton-attempt`.
    pub(crate) attempt: Option<i64>,
    /// How often it was delivered and not acknowledged before.
    pub(crate) returned: i64,
}

/// A channel with confirms, for one platform's queues.
pub(crate) struct Wire {
    channel: Channel,
    _connection: Connection,
    main: String,
    failed: String,
    waiting: String,
}

impl Wire {
    pub(crate) async fn connect(platform: &Platform) -> Self {
        let properties = ConnectionProperties::default();
        let connection = Connection::connect(platform.amqp_url(), properties).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        let (namespace, pool) = (platform.namespace(), PoolName::default_pool());
        Self {
            channel,
            _connection: connection,
            main: main_queue(namespace, &pool),
            failed: failed_queue(namespace),
            waiting: retry_queue(namespace, &pool, 30_000),
        }
    }

    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// The main queue of the pool `default`.
    pub(crate) fn main(&self) -> &str {
        &self.main
    }

    /// The failed queue.
    pub(crate) fn failed(&self) -> &str {
        &self.failed
    }

    /// The delay queue of half a minute.
    pub(crate) fn waiting(&self) -> &str {
        &self.waiting
    }

    /// Publishes to the main queue, and waits until the broker has all messages.
    pub(crate) async fn send(&self, messages: &[Message]) {
        self.send_to(&self.main, messages).await;
    }

    /// The same, to another queue.
    pub(crate) async fn send_to(&self, queue: &str, messages: &[Message]) {
        let mut confirms = Vec::with_capacity(messages.len());
        for message in messages {
            let options = BasicPublishOptions { mandatory: true, immediate: false };
            let to = queue.into();
            let properties = message.properties();
            let publishing =
                self.channel.basic_publish("".into(), to, options, &message.body, properties);
            confirms.push(publishing.await.unwrap());
        }
        for confirm in confirms {
            // The broker also confirms a message that no queue accepted.
            let confirmed = confirm.await.unwrap();
            assert!(matches!(confirmed, Confirmation::Ack(None)), "{confirmed:?}");
        }
    }

    /// Takes one message out of a queue.
    pub(crate) async fn take(&self, queue: &str) -> Option<Found> {
        let options = BasicGetOptions { no_ack: true };
        let got = self.channel.basic_get(queue.into(), options).await.unwrap();
        got.as_ref().map(found)
    }

    /// Reads all ready messages, and puts them back.
    pub(crate) async fn look(&self, queue: &str) -> Vec<Found> {
        let mut all = Vec::new();
        let mut last = None;
        let get = || self.channel.basic_get(queue.into(), BasicGetOptions::default());
        while let Some(message) = get().await.unwrap() {
            all.push(found(&message));
            last = Some(message);
        }
        if let Some(message) = last {
            let options = BasicNackOptions { multiple: true, requeue: true };
            assert!(message.acker.nack(options).await.unwrap());
        }
        all
    }

    /// The number of ready messages in a queue.
    pub(crate) async fn depth(&self, queue: &str) -> u32 {
        self.ask(queue).await.message_count()
    }

    /// The number of consumers of a queue.
    pub(crate) async fn consumers(&self, queue: &str) -> u32 {
        self.ask(queue).await.consumer_count()
    }

    async fn ask(&self, queue: &str) -> Queue {
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::durable() };
        let asking = self.channel.queue_declare(queue.into(), options, FieldTable::default());
        asking.await.unwrap()
    }

    /// Takes `count` messages out of the failed queue as they arrive.
    pub(crate) async fn parked(&self, platform: &Platform, count: usize) -> Vec<Found> {
        let mut all = Vec::with_capacity(count);
        let what = format!("{count} messages are parked");
        let limit = super::DEADLINE + Duration::from_millis(20) * count as u32;
        let collect = async || {
            while let Some(message) = self.take(&self.failed).await {
                all.push(message);
            }
            (all.len() >= count).then_some(())
        };
        platform.eventually(&what, limit, collect).await;
        all
    }
}

fn found(message: &BasicGetMessage) -> Found {
    let headers = message.properties.headers().clone().unwrap_or_default();
    let number = |name: &str| match headers.inner().get(name) {
        Some(AMQPValue::LongLongInt(number)) => Some(*number),
        Some(AMQPValue::LongInt(number)) => Some((*number).into()),
        _ => None,
    };
    let reason = match headers.inner().get("sexton-failed-reason") {
        Some(AMQPValue::LongString(text)) => Some(text.to_string()),
        _ => None,
    };
    Found {
        body: message.data.clone(),
        id: message.properties.message_id().as_ref().map(ToString::to_string),
        reason,
        attempt: number("sexton-attempt"),
        returned: number("x-delivery-count").unwrap_or(0),
    }
}
