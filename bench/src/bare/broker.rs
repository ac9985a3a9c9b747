//! Messages of a quorum queue, consumed and acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures_util::StreamExt as _;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable, LongString, ShortString};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::Arguments;

/// Time limit for all messages; a consumer whose channel is closed reports nothing.
const DEADLINE: Duration = Duration::from_mins(5);
/// Number of confirms awaited together.
const CONFIRM_BATCH: i64 = 1_000;

/// Returns messages per second, each consumer with its own channel and prefetch.
pub(super) async fn drained(arguments: &Arguments, amqp_url: &str) -> Result<f64> {
    let connection = Connection::connect(amqp_url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    let queue = ShortString::from(format!("sexton-bench-{}", uuid::Uuid::new_v4().simple()));
    let mut table = FieldTable::default();
    let quorum = AMQPValue::LongString(LongString::from("quorum"));
    table.insert("x-queue-type".into(), quorum);
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(queue.clone(), durable, table).await?;
    fill(&channel, &queue, arguments.count).await?;
    let taken = consume(&connection, &queue, arguments).await;
    // Its consumers end with it.
    channel.queue_delete(queue, QueueDeleteOptions::default()).await?;
    connection.close(200, "done".into()).await?;
    taken
}

async fn fill(channel: &Channel, queue: &ShortString, count: i64) -> Result<()> {
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    let mut left = count;
    while left > 0 {
        let mut confirms = Vec::new();
        for _ in 0..left.min(CONFIRM_BATCH) {
            let properties = BasicProperties::default()
                .with_message_id(ShortString::from(uuid::Uuid::new_v4().to_string()))
                .with_delivery_mode(2);
            let options = BasicPublishOptions::default();
            let sent = channel.basic_publish("".into(), queue.clone(), options, b"{}", properties);
            confirms.push(sent.await?);
        }
        left -= confirms.len() as i64;
        for confirm in confirms {
            ensure!(confirm.await?.is_ack(), "a message was not confirmed");
        }
    }
    Ok(())
}

async fn consume(
    connection: &Connection,
    queue: &ShortString,
    arguments: &Arguments,
) -> Result<f64> {
    let left = Arc::new(AtomicI64::new(arguments.count));
    let over = Arc::new(Notify::new());
    let began = Instant::now();
    for number in 0..arguments.slots {
        let channel = connection.create_channel().await?;
        channel.basic_qos(arguments.prefetch, BasicQosOptions::default()).await?;
        let tag = ShortString::from(format!("consumer-{number}"));
        let options = BasicConsumeOptions::default();
        let mut deliveries =
            channel.basic_consume(queue.clone(), tag, options, FieldTable::default()).await?;
        let (left, over) = (left.clone(), over.clone());
        tokio::spawn(async move {
            while let Some(delivery) = deliveries.next().await {
                delivery?.ack(BasicAckOptions::default()).await?;
                if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    over.notify_one();
                }
            }
            // The channel lives as long as its deliveries are awaited.
            drop(channel);
            Ok::<_, lapin::Error>(())
        });
    }
    timeout(DEADLINE, over.notified()).await?;
    Ok(arguments.count as f64 / began.elapsed().as_secs_f64())
}
