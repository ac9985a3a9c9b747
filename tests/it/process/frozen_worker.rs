//! A worker that does not die, but is stopped by SIGSTOP.

use sexton_tests::platform::Platform;

use super::ledger::Ledger;
use super::{FINAL_TIMEOUT, by_hand, until};

#[tokio::test]
async fn the_task_of_a_frozen_worker_ends_with_its_lease_and_never_runs_beside_the_next() {
    let mut platform = Platform::new().await.unwrap();
    let ledger = Ledger::new(&platform, "[ $SEXTON_ATTEMPT = 1 ] && sleep 300");
    platform.catalogue(&ledger.catalogue());
    platform.apply(&by_hand("a.b", "work", "")).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let lease = ("LEASE_MS", "3000");
    let mut frozen = platform.start_worker("w1", &[lease]).unwrap();
    frozen.ready().await;
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    platform
        .eventually("the task has begun", FINAL_TIMEOUT, async || ledger.lines("begin").pop())
        .await;
    // Only the worker: its guard and its task continue.
    frozen.pause();
    let _other = platform.start_worker("w2", &[lease]).unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 2", 1).await;
    ledger.no_overlap();
    // Resumed, it learns that it has lost the attempt, and changes nothing.
    frozen.resume();
    until(&platform, "sexton.all_attempts WHERE outcome = 'lost' AND late_outcome IS NOT NULL", 1)
        .await;
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 2", 1).await;
    frozen.ready().await;
}

#[tokio::test]
async fn a_stopped_worker_lets_its_task_end_and_a_second_signal_hurries_it() {
    let mut platform = Platform::new().await.unwrap();
    let ledger = Ledger::new(&platform, "sleep $(cat pause)");
    let pause = platform.folder().join("pause");
    platform.catalogue(&ledger.catalogue());
    platform.apply(&by_hand("a.b", "work", "")).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();

    std::fs::write(&pause, "2").unwrap();
    let mut patient = platform.start_worker("w1", &[]).unwrap();
    platform.sexton(&["jobs", "trigger", "a.b", "--key", "short"]).await;
    platform
        .eventually("the short task has begun", FINAL_TIMEOUT, async || ledger.lines("begin").pop())
        .await;
    patient.terminate();
    assert!(patient.exit(FINAL_TIMEOUT).await.success());
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 1", 1).await;

    std::fs::write(&pause, "300").unwrap();
    let mut hurried = platform.start_worker("w2", &[]).unwrap();
    platform.sexton(&["jobs", "trigger", "a.b", "--key", "long"]).await;
    platform
        .eventually("the long task has begun", FINAL_TIMEOUT, async || {
            ledger.lines("begin").get(1).cloned()
        })
        .await;
    hurried.terminate();
    platform
        .eventually("it says that it stops", FINAL_TIMEOUT, async || {
            hurried.log().contains("nothing new is begun").then_some(())
        })
        .await;
    hurried.terminate();
    assert!(hurried.exit(FINAL_TIMEOUT).await.success());
    // Interrupted, not failed: it costs no retry and is due at once.
    until(
        &platform,
        "sexton.executions WHERE state = 'retrying' AND retries_used = 0 AND attempt = 2",
        1,
    )
    .await;
    until(&platform, "sexton.all_attempts WHERE outcome = 'interrupted'", 1).await;
    std::fs::write(&pause, "0").unwrap();
    let _third = platform.start_worker("w3", &[]).unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 2).await;
    ledger.no_overlap();
}
