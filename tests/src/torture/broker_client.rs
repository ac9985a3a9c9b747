//! A hand in the broker: takes and publishes messages past everything that Sexton does.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicPublishOptions, BasicRejectOptions,
    ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions, QueuePurgeOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use tokio::time::timeout;
use uuid::Uuid;

const BROKER_TIMEOUT: Duration = Duration::from_secs(20);
/// Messages that are looked through for one.
const MAX_SCANNED_MESSAGES: usize = 1_000;

/// A connection of its own, for one action. It is dropped with whatever was not acknowledged, which
/// returns to its queue.
pub(super) struct BrokerClient {
    channel: Channel,
    connection: Connection,
}

impl BrokerClient {
    /// Connects to the broker of `url`.
    pub(super) async fn reach(url: &str) -> Result<Self> {
        let reaching = async {
            let connection = Connection::connect(url, ConnectionProperties::default()).await?;
            let channel = connection.create_channel().await?;
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            anyhow::Ok(Self { channel, connection })
        };
        timeout(BROKER_TIMEOUT, reaching).await?.context("the hand does not reach the broker")
    }

    /// Publishes a ticket of an execution, as a tool would that copies only what a ticket needs.
    pub(super) async fn ticket(&self, queue: &str, id: Uuid, attempt: i32) -> Result<()> {
        let mut headers = FieldTable::default();
        headers.insert("sexton-attempt".into(), i64::from(attempt).into());
        let properties = BasicProperties::default()
            .with_message_id(ShortString::from(id.to_string()))
            .with_delivery_mode(2)
            .with_headers(headers);
        self.publish(queue, b"{}", properties).await
    }

    /// Publishes a task as another system would, with a message id or without.
    pub(super) async fn foreign(&self, queue: &str, key: Option<&str>) -> Result<()> {
        let mut properties = BasicProperties::default().with_delivery_mode(2);
        if let Some(key) = key {
            properties = properties.with_message_id(ShortString::from(key));
        }
        self.publish(queue, br#"{"type":"work"}"#, properties).await
    }

    async fn publish(&self, queue: &str, body: &[u8], properties: BasicProperties) -> Result<()> {
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let publishing = async {
            let queue = ShortString::from(queue);
            let sent = self.channel.basic_publish("".into(), queue, options, body, properties);
            anyhow::Ok(sent.await?.await?)
        };
        let confirmed = timeout(BROKER_TIMEOUT, publishing).await??;
        ensure!(matches!(confirmed, Confirmation::Ack(None)), "not published: {confirmed:?}");
        Ok(())
    }

    /// Takes the message of `id` out of a queue, for good; whether it was there.
    pub(super) async fn take(&self, queue: &str, id: Uuid) -> Result<bool> {
        timeout(BROKER_TIMEOUT, self.find(queue, id, false)).await?
    }

    /// Rejects the message of `id`, so that the broker parks it; whether it was there.
    pub(super) async fn reject(&self, queue: &str, id: Uuid) -> Result<bool> {
        timeout(BROKER_TIMEOUT, self.find(queue, id, true)).await?
    }

    /// What was taken besides returns to the queue when this hand lets go.
    async fn find(&self, queue: &str, id: Uuid, reject: bool) -> Result<bool> {
        let id = id.to_string();
        for _ in 0..MAX_SCANNED_MESSAGES {
            let got = self.channel.basic_get(queue.into(), BasicGetOptions::default()).await?;
            let Some(message) = got else { return Ok(false) };
            let named = message.properties.message_id().as_ref();
            if named.is_some_and(|named| named.as_str() == id) {
                if reject {
                    message.reject(BasicRejectOptions { requeue: false }).await?;
                } else {
                    message.ack(BasicAckOptions::default()).await?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The message ids of all that is ready in a queue; the messages stay.
    pub(super) async fn ids(&self, queue: &str) -> Result<Vec<Uuid>> {
        let looking = async {
            let mut found = Vec::new();
            for _ in 0..MAX_SCANNED_MESSAGES {
                let got = self.channel.basic_get(queue.into(), BasicGetOptions::default()).await?;
                let Some(message) = got else { break };
                let named = message.properties.message_id().as_ref();
                found.extend(named.and_then(|named| named.as_str().parse::<Uuid>().ok()));
            }
            anyhow::Ok(found)
        };
        timeout(BROKER_TIMEOUT, looking).await?
    }

    /// Deletes a queue with what is in it.
    pub(super) async fn delete(&self, queue: &str) -> Result<()> {
        let deleting = self.channel.queue_delete(queue.into(), QueueDeleteOptions::default());
        timeout(BROKER_TIMEOUT, deleting).await??;
        Ok(())
    }

    /// Whether a queue is known and does not answer: one without a leader. One that is not there is not
    /// dead; the next process that needs it declares it again.
    pub(super) async fn is_dead(&self, queue: &str) -> bool {
        let taking = self.channel.basic_get(queue.into(), BasicGetOptions::default());
        match timeout(BROKER_TIMEOUT, taking).await {
            // What was taken returns when this hand lets go.
            Ok(Ok(_)) => false,
            Ok(Err(error)) => !error.is_amqp_soft_error(),
            Err(_) => true,
        }
    }

    /// Deletes what is ready in a queue.
    pub(super) async fn purge(&self, queue: &str) -> Result<()> {
        let purging = self.channel.queue_purge(queue.into(), QueuePurgeOptions::default());
        timeout(BROKER_TIMEOUT, purging).await??;
        Ok(())
    }

    /// The ready messages of a queue.
    pub(super) async fn depth(&self, queue: &str) -> Result<u32> {
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let asking = self.channel.queue_declare(queue.into(), passive, FieldTable::default());
        Ok(timeout(BROKER_TIMEOUT, asking).await??.message_count())
    }

    /// Closes the connection.
    pub(super) async fn let_go(self) {
        let _ = timeout(BROKER_TIMEOUT, self.connection.close(200, "done".into())).await;
    }
}
