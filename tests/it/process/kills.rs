//! SIGKILL at the worst moments. Between any two effects: see `super::crash_points`.

use std::collections::HashSet;
use std::time::Duration;

use lapin::options::{BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use sexton_broker::{PoolName, names};
use sexton_tests::platform::Platform;

use super::foreign::depth;
use super::ledger::Ledger;
use super::{FINAL_TIMEOUT, all_due_at, by_hand, count, until};

/// Short, so that the tests need not wait long for the rescuer.
const LEASE: (&str, &str) = ("LEASE_MS", "3000");

/// Requires programs built with the feature `fault-points`, as `make test` builds them.
fn dies_at(point: &str) -> (&str, &str) {
    ("FAULT_POINT", point)
}

#[tokio::test]
async fn a_scheduler_killed_between_claim_and_publish_loses_nothing() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.noop]\ncommand = [\"/bin/true\"]\n");
    let due = (sexton_service::clock::now() + Duration::from_secs(3)).format("%Y-%m-%dT%H:%M:%S");
    let job = format!("[[job]]\nname = \"a.b\"\ntask = \"noop\"\nat = \"{due}\"\n");
    platform.apply(&job).await.unwrap();
    let mut first = platform.start_scheduler("s1", &[dies_at("scheduler.claimed")]).unwrap();
    first.exit(FINAL_TIMEOUT).await;
    assert!(first.log().contains("fault point scheduler.claimed"), "{}", first.log());
    let unpublished = "sexton.executions WHERE state = 'pending' AND ticket_published_at IS NULL";
    assert_eq!(count(&platform, unpublished).await, 1, "it was claimed and not published");

    let _second = platform.start_scheduler("s2", &[]).unwrap();
    let _worker = platform.start_worker("w1", &[]).unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 1).await;
    assert_eq!(count(&platform, "sexton.all_attempts").await, 1);
    assert_eq!(count(&platform, "sexton.executions").await, 1);
}

#[tokio::test]
async fn a_worker_killed_in_the_middle_of_a_task_is_succeeded_by_another() {
    let mut platform = Platform::new().await.unwrap();
    let ledger = Ledger::new(&platform, "[ $SEXTON_ATTEMPT = 1 ] && sleep 300");
    platform.catalogue(&ledger.catalogue());
    platform.apply(&by_hand("a.b", "work", "")).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut doomed = platform.start_worker("w1", &[LEASE]).unwrap();
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    platform
        .eventually("the task has begun", FINAL_TIMEOUT, async || ledger.lines("begin").pop())
        .await;
    doomed.kill();
    let _other = platform.start_worker("w2", &[LEASE]).unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 2", 1).await;
    until(&platform, "sexton.all_attempts WHERE outcome = 'lost' AND number = 1", 1).await;
    ledger.no_overlap();
    assert_eq!(ledger.lines("begin").len(), 2);
    assert_eq!(ledger.lines("end").len(), 1);
}

#[tokio::test]
async fn a_worker_killed_as_it_takes_over_a_task_without_a_message_id_runs_it_at_least_once() {
    let mut platform = Platform::new().await.unwrap();
    let ledger = Ledger::new(&platform, ":");
    platform.catalogue(&ledger.catalogue());
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut doomed = platform.start_worker("w1", &[LEASE, dies_at("worker.adopted")]).unwrap();
    doomed.ready().await;
    publish(&platform, br#"{"type":"work"}"#).await;
    doomed.exit(FINAL_TIMEOUT).await;
    assert!(doomed.log().contains("fault point worker.adopted"), "{}", doomed.log());
    assert_eq!(count(&platform, "sexton.executions").await, 1, "it was taken over before");
    assert_eq!(count(&platform, "sexton.all_attempts").await, 0);

    let _heir = platform.start_worker("w2", &[LEASE]).unwrap();
    // The broker redelivers the unacknowledged message: a second execution, as documented.
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 2).await;
    assert_eq!(count(&platform, "sexton.executions").await, 2);
    assert_eq!(count(&platform, "sexton.executions WHERE ticket_published_at IS NULL").await, 0);
    assert_eq!(ledger.lines("end").len(), 2);
    assert_eq!(depth(&platform, &main_queue(&platform)).await, 0);
}

#[tokio::test]
async fn a_worker_killed_as_it_parks_a_message_loses_none() {
    const UNREADABLE: &[u8] = b"\xff\x00 not JSON";
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.noop]\ncommand = [\"/bin/true\"]\n");
    let mut doomed = platform.start_worker("w1", &[dies_at("worker.moved")]).unwrap();
    doomed.ready().await;
    publish(&platform, UNREADABLE).await;
    doomed.exit(FINAL_TIMEOUT).await;
    assert!(doomed.log().contains("fault point worker.moved"), "{}", doomed.log());

    let failed = names::failed_queue(platform.namespace());
    let _heir = platform.start_worker("w2", &[]).unwrap();
    // One copy by each worker: the first died before it passed the original on.
    platform
        .eventually("both copies are parked", FINAL_TIMEOUT, async || {
            (depth(&platform, &failed).await == 2).then_some(())
        })
        .await;
    assert_eq!(depth(&platform, &main_queue(&platform)).await, 0);
    for _ in 0..2 {
        assert_eq!(take(&platform, &failed).await.as_deref(), Some(UNREADABLE));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_survives_killed_schedulers_and_workers_without_concurrent_runs() {
    const JOBS: i64 = 300;
    let mut platform = Platform::new().await.unwrap();
    let ledger = Ledger::new(&platform, ":");
    platform.catalogue(&ledger.catalogue());
    let due = sexton_service::clock::now() + Duration::from_secs(6);
    let jobs = all_due_at(due, 300, "work");
    platform.apply(&jobs).await.unwrap();
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = platform.start_worker("w1", &[LEASE]).unwrap();
    let _scheduler = platform.start_scheduler("s2", &[]).unwrap();
    let _worker = platform.start_worker("w2", &[LEASE]).unwrap();
    platform
        .eventually("some have run, not all", FINAL_TIMEOUT, async || {
            (count(&platform, "sexton.executions WHERE state = 'succeeded'").await > 20)
                .then_some(())
        })
        .await;
    scheduler.kill();
    worker.kill();
    until(&platform, "sexton.executions WHERE state = 'succeeded'", JOBS).await;
    assert_eq!(count(&platform, "sexton.executions").await, JOBS);
    ledger.no_overlap();
    // At least once each: a task whose worker died between its end and its record ran again.
    let ended: HashSet<_> = ledger.lines("end").iter().map(|line| key_of(line)).collect();
    assert_eq!(ended.len(), usize::try_from(JOBS).unwrap());
}

fn key_of(line: &str) -> String {
    line.split(' ').nth(1).unwrap().to_owned()
}

fn main_queue(platform: &Platform) -> String {
    names::main_queue(platform.namespace(), &PoolName::default_pool())
}

/// A client's own connection, independent of Sexton.
async fn channel(platform: &Platform) -> (Connection, Channel) {
    let connection = Connection::connect(platform.amqp_url(), ConnectionProperties::default());
    let connection = connection.await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    (connection, channel)
}

/// Publishes a persistent message without any other property to the main queue.
async fn publish(platform: &Platform, body: &[u8]) {
    let (_connection, channel) = channel(platform).await;
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let persistent = BasicProperties::default().with_delivery_mode(2);
    let to = main_queue(platform);
    let sent = channel.basic_publish("".into(), to.as_str().into(), options, body, persistent);
    let confirmed = sent.await.unwrap().await.unwrap();
    assert!(matches!(confirmed, Confirmation::Ack(None)), "{confirmed:?}");
}

/// Takes a message out of a queue and returns its body.
async fn take(platform: &Platform, queue: &str) -> Option<Vec<u8>> {
    let (_connection, channel) = channel(platform).await;
    let got = channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await.unwrap();
    got.map(|message| message.data.clone())
}
