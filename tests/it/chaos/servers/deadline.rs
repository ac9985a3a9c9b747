//! A task that runs for longer than the broker lets a consumer hold its message.
//!
//! In production the broker closes the channel after 30 minutes, and a slot acknowledges its ticket after 20. Here both
//! are shorter by the same factor of 60: half a minute and 20 seconds, so that 35 s stand for 35 minutes.

use std::time::Duration;

use futures_util::StreamExt as _;
use lapin::options::{BasicConsumeOptions, BasicPublishOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Connection, ConnectionProperties};
use sexton_servers::{RabbitOptions, RabbitServer};
use sexton_tests::platform::Platform;

use crate::bad_input::wire::Wire;
use crate::process::ledger::Ledger;
use crate::process::{by_hand, until};

const FINAL_TIMEOUT: Duration = Duration::from_mins(5);
const ACK_DEADLINE: (&str, &str) = ("ACK_DEADLINE_MS", "20000");
/// How often a channel that is opened from now on looks for consumers that are too slow: once a minute by default.
const LOOK_EACH_SECOND: [&str; 2] =
    ["eval", "application:set_env(rabbit, channel_tick_interval, 1000)."];

/// A consumer that holds a message for as long as the broker permits. The end of its channel is the
/// event that the test needs, and shows that this broker enforces its limit.
struct Holder {
    _connection: Connection,
    channel: lapin::Channel,
}

impl Holder {
    async fn new(url: &str) -> Self {
        let connection = Connection::connect(url, ConnectionProperties::default()).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        let (durable, table) =
            (QueueDeclareOptions { durable: true, ..Default::default() }, FieldTable::default());
        let mut quorum = table.clone();
        quorum.insert("x-queue-type".into(), lapin::types::AMQPValue::LongString("quorum".into()));
        channel.queue_declare("held".into(), durable, quorum).await.unwrap();
        let publishing = channel.basic_publish(
            "".into(),
            "held".into(),
            BasicPublishOptions::default(),
            b"held",
            BasicProperties::default(),
        );
        publishing.await.unwrap();
        let consuming =
            channel.basic_consume("held".into(), "".into(), BasicConsumeOptions::default(), table);
        let mut consumer = consuming.await.unwrap();
        let _held = consumer.next().await.unwrap().unwrap();
        Self { _connection: connection, channel }
    }

    fn is_thrown_out(&self) -> bool {
        !self.channel.status().connected()
    }
}

#[tokio::test]
async fn a_task_longer_than_the_consumer_timeout_costs_no_channel_and_runs_once() {
    let configuration = vec!["consumer_timeout = 30000".to_owned()];
    let rabbit = RabbitServer::start_private(RabbitOptions { configuration }).await.unwrap();
    rabbit.control(&LOOK_EACH_SECOND).await.unwrap();
    let servers = sexton_servers::shared().await.unwrap();
    let mut platform = Platform::on(&servers.database_url, rabbit.url()).await.unwrap();
    let ledger = Ledger::new(&platform, "while ! test -e go; do sleep 0.1; done");
    platform.catalogue(&ledger.catalogue());
    platform.apply(&by_hand("a.b", "work", "")).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let env = [ACK_DEADLINE, ("WORKER_SLOTS", "1")];
    let mut worker = platform.start_worker("w1", &env).unwrap();
    worker.ready().await;
    let wire = Wire::connect(&platform).await;
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    let begun = async || ledger.lines("begin").pop();
    platform.eventually("the task has begun", FINAL_TIMEOUT, begun).await;
    // It begins to hold its message later than the slot did.
    let holder = Holder::new(rabbit.url()).await;
    let thrown_out = async || holder.is_thrown_out().then_some(());
    platform.eventually("the broker's patience is over", FINAL_TIMEOUT, thrown_out).await;
    let long = "sexton.all_attempts WHERE finished_at IS NULL AND opened_at < now() - interval '35 seconds'";
    platform
        .eventually("the task is longer than that", FINAL_TIMEOUT, async || {
            (crate::process::count(&platform, long).await == 1).then_some(())
        })
        .await;

    std::fs::write(platform.folder().join("go"), "").unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 1", 1).await;
    // The slot consumes again, on the same channel: the broker had no reason to close it.
    let consumes = async || (wire.consumers(wire.main()).await == 1).then_some(());
    platform.eventually("the slot consumes again", FINAL_TIMEOUT, consumes).await;
    assert!(!worker.log().contains("the consumer has ended"), "{}", worker.log());
    assert_eq!(ledger.lines("begin").len(), 1);
    assert_eq!(ledger.lines("end").len(), 1);
    assert_eq!(wire.depth(wire.main()).await, 0, "the ticket did not come back");
    worker.terminate();
    assert!(worker.exit(FINAL_TIMEOUT).await.success());
    drop(platform);
    rabbit.end().await.unwrap();
}
