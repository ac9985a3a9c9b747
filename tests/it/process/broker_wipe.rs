//! The broker loses everything; the rows bring it back.

use sexton_broker::names;
use sexton_servers::{RabbitOptions, RabbitServer};
use sexton_tests::platform::Platform;

use super::foreign::depth;
use super::{by_hand, count, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_execution_ends_after_a_broker_wipe_and_failed_ones_are_parked_again() {
    let mut rabbit = RabbitServer::start_private(RabbitOptions::default()).await.unwrap();
    let database = sexton_servers::shared().await.unwrap().database_url.clone();
    let mut platform = Platform::on(&database, rabbit.url()).await.unwrap();
    let repaired = platform.folder().join("repaired");
    let test = format!("test -e {}", repaired.display());
    platform.catalogue(&format!(
        "[tasks.good]\ncommand = [\"/bin/true\"]\n\
         [tasks.bad]\ncommand = [\"/bin/false\"]\n\
         [tasks.flaky]\ncommand = [\"/bin/sh\", \"-c\", \"{test}\"]\n"
    ));
    let jobs = by_hand("a.pending", "good", "")
        + &by_hand("a.retrying", "flaky", "retry = { delay = \"4m\" }")
        + &by_hand("a.failed", "bad", "retry = { max_retries = 0 }");
    platform.apply(&jobs).await.unwrap();
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = platform.start_worker("w1", &[]).unwrap();
    worker.ready().await;
    trigger(&platform, "a.retrying", 70).await;
    trigger(&platform, "a.failed", 60).await;
    until(
        &platform,
        "sexton.executions WHERE state = 'retrying' AND ticket_published_at IS NOT NULL",
        70,
    )
    .await;
    until(
        &platform,
        "sexton.executions WHERE state = 'failed' AND ticket_published_at IS NOT NULL",
        60,
    )
    .await;
    worker.terminate();
    worker.exit(super::FINAL_TIMEOUT).await;
    trigger(&platform, "a.pending", 70).await;
    until(
        &platform,
        "sexton.executions WHERE state = 'pending' AND ticket_published_at IS NOT NULL",
        70,
    )
    .await;

    rabbit.wipe().await.unwrap();
    std::fs::write(&repaired, "").unwrap();
    // Ten minutes pass, for the rows: reconcile is patient for five.
    sqlx::query(
        "UPDATE sexton.executions SET next_attempt_at = next_attempt_at - interval '10 minutes',
             ticket_published_at = ticket_published_at - interval '10 minutes'",
    )
    .execute(platform.store().pool())
    .await
    .unwrap();
    let _worker = platform.start_worker("w2", &[]).unwrap();
    scheduler.ready().await;
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 140).await;
    // The rows said so before the wipe; whether it is true again only the queue can tell.
    let parked = names::failed_queue(platform.namespace());
    let parked_again = async || (depth(&platform, &parked).await == 60).then_some(());
    platform.eventually("60 parked messages", super::FINAL_TIMEOUT, parked_again).await;
    until(
        &platform,
        "sexton.executions WHERE state = 'failed' AND ticket_published_at IS NOT NULL",
        60,
    )
    .await;
    assert_eq!(count(&platform, "sexton.all_attempts WHERE outcome = 'lost'").await, 0);
    assert_eq!(count(&platform, "sexton.executions").await, 200);
}

async fn trigger(platform: &Platform, job: &str, times: usize) {
    for n in 0..times {
        let done = platform.sexton(&["jobs", "trigger", job, "--key", &format!("k{n}")]).await;
        assert!(done.status.success(), "{}", done.stderr);
    }
}
