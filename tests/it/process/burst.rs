//! Ten thousand jobs due in the same second, every ticket published twice.

use std::collections::HashSet;
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{FieldTable, ShortString};
use lapin::{BasicProperties, Connection, ConnectionProperties};
use sexton_broker::{PoolName, names};
use sexton_tests::platform::Platform;
use uuid::Uuid;

use super::{all_due_at, count, until};

const JOBS: usize = 10_000;

/// Publishes a second ticket for every execution as soon as its row exists.
async fn publish_everything_again(platform: &Platform) {
    let connection = Connection::connect(platform.amqp_url(), ConnectionProperties::default());
    let connection = connection.await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    let queue = names::main_queue(platform.namespace(), &PoolName::default_pool());
    let mut doubled = HashSet::new();
    while doubled.len() < JOBS {
        let ids: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM sexton.executions")
            .fetch_all(platform.store().pool())
            .await
            .unwrap();
        let mut confirms = Vec::new();
        for id in ids.into_iter().filter(|id| doubled.insert(*id)) {
            let mut headers = FieldTable::default();
            headers.insert("sexton-attempt".into(), 1_i64.into());
            let properties = BasicProperties::default()
                .with_message_id(ShortString::from(id.to_string()))
                .with_delivery_mode(2)
                .with_headers(headers);
            let routing = ShortString::from(queue.clone());
            let options = BasicPublishOptions::default();
            let published =
                channel.basic_publish("".into(), routing, options, b"{}", properties).await;
            confirms.push(published.unwrap());
        }
        for confirm in confirms {
            assert!(confirm.await.unwrap().is_ack());
        }
    }
    connection.close(200, "done".into()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_jobs_due_at_once_with_every_ticket_twice_run_once_each() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.noop]\ncommand = [\"/bin/true\"]\n");
    let due = sexton_service::clock::now() + Duration::from_secs(20);
    let jobs = all_due_at(due, JOBS, "noop");
    platform.apply(&jobs).await.unwrap();

    let slots = [("WORKER_SLOTS", "16")];
    let mut schedulers = [
        platform.start_scheduler("s1", &[]).unwrap(),
        platform.start_scheduler("s2", &[]).unwrap(),
    ];
    let mut workers = [
        platform.start_worker("w1", &slots).unwrap(),
        platform.start_worker("w2", &slots).unwrap(),
    ];
    for program in schedulers.iter_mut().chain(&mut workers) {
        program.ready().await;
    }
    publish_everything_again(&platform).await;
    let finished = "sexton.executions WHERE state = 'succeeded'";
    platform
        .eventually("10,000 executions have succeeded", Duration::from_secs(400), async || {
            (count(&platform, finished).await == JOBS as i64).then_some(())
        })
        .await;

    assert_eq!(count(&platform, "sexton.executions").await, JOBS as i64);
    assert_eq!(count(&platform, "sexton.all_attempts").await, JOBS as i64);
    assert_eq!(count(&platform, "sexton.all_attempts WHERE outcome <> 'succeeded'").await, 0);
    // Both schedulers claimed some of the firings, without a leader.
    until(
        &platform,
        "(SELECT DISTINCT split_part(claimed_by, ':', 1) FROM sexton.executions) AS s",
        2,
    )
    .await;
    until(&platform, "(SELECT DISTINCT worker_id FROM sexton.all_attempts) AS w", 2).await;
}
