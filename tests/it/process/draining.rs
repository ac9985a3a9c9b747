//! A worker that receives SIGTERM: it takes nothing new, lets short tasks end, and interrupts long ones at
//! no cost. See `super::frozen` for a second signal.

use sexton_tests::platform::{Platform, Program};

use super::ledger::Ledger;
use super::{FINAL_TIMEOUT, by_hand, count, until};
use crate::bad_input::wire::Wire;

const UNPAID: &str = "retries_used = 0 AND timeouts_used = 0 AND crashes_used = 0";

/// A platform whose tasks do `body`, with a scheduler and one worker of one slot that has begun one.
async fn at_work(body: &str, grace_ms: &str) -> (Platform, Ledger, [Program; 2]) {
    let mut platform = Platform::new().await.unwrap();
    let ledger = Ledger::new(&platform, body);
    platform.catalogue(&ledger.catalogue());
    platform.apply(&by_hand("a.b", "work", "")).await.unwrap();
    let scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let env = [("SHUTDOWN_GRACE_MS", grace_ms), ("WORKER_SLOTS", "1")];
    let worker = platform.start_worker("w1", &env).unwrap();
    platform.sexton(&["jobs", "trigger", "a.b", "--key", "first"]).await;
    let begun = async || ledger.lines("begin").pop();
    platform.eventually("the task has begun", FINAL_TIMEOUT, begun).await;
    (platform, ledger, [scheduler, worker])
}

#[tokio::test]
async fn a_stopping_worker_finishes_its_short_task_and_takes_no_further_ticket() {
    let wait = "while ! test -e go; do sleep 0.05; done";
    let (platform, ledger, [_scheduler, mut stopping]) = at_work(wait, "60000").await;
    stopping.terminate();
    let stops = async || stopping.log().contains("nothing new is begun").then_some(());
    platform.eventually("it stops", FINAL_TIMEOUT, stops).await;
    platform.sexton(&["jobs", "trigger", "a.b", "--key", "next"]).await;
    until(&platform, "sexton.executions WHERE ticket_published_at IS NOT NULL", 2).await;
    let wire = Wire::connect(&platform).await;
    std::fs::write(platform.folder().join("go"), "").unwrap();
    assert!(stopping.exit(FINAL_TIMEOUT).await.success(), "{}", stopping.log());
    assert_eq!(
        count(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 1").await,
        1
    );
    assert_eq!(count(&platform, "sexton.all_attempts").await, 1, "the next ticket was not taken");
    assert_eq!(wire.depth(wire.main()).await, 1);
    let _other = platform.start_worker("w2", &[]).unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 1", 2).await;
    assert_eq!(ledger.lines("end").len(), 2);
}

#[tokio::test]
async fn a_task_that_outlasts_the_grace_is_interrupted_and_run_elsewhere_at_once_at_no_cost() {
    let long = "[ $SEXTON_ATTEMPT = 1 ] && { trap 'echo cleared >> cleared; exit 1' TERM; sleep 300 & wait; }";
    let (platform, ledger, [_scheduler, mut stopping]) = at_work(long, "500").await;
    let mut other = platform.start_worker("w2", &[]).unwrap();
    other.ready().await;
    stopping.terminate();
    assert!(stopping.exit(FINAL_TIMEOUT).await.success(), "{}", stopping.log());
    let done = format!("sexton.executions WHERE state = 'succeeded' AND attempt = 2 AND {UNPAID}");
    until(&platform, &done, 1).await;
    until(&platform, "sexton.all_attempts WHERE number = 1 AND outcome = 'interrupted'", 1).await;
    assert!(platform.folder().join("cleared").exists(), "it had the time to clear up");
    // Neither a retry's delay of 30 s nor a lease of 20 s was waited for.
    let apart: f64 = sqlx::query_scalar(
        "SELECT extract(epoch FROM b.opened_at - a.finished_at)::float8
         FROM sexton.all_attempts a JOIN sexton.all_attempts b USING (execution_id) WHERE a.number = 1 AND b.number = 2",
    )
    .fetch_one(platform.store().pool())
    .await
    .unwrap();
    println!("MEASURED the next attempt began {apart:.3} s after the interruption");
    assert!((0.0..10.0).contains(&apart), "{apart} s");
    ledger.no_overlap();
}

#[tokio::test]
async fn a_task_that_ignores_the_signal_is_killed_and_its_attempt_is_interrupted_all_the_same() {
    let deaf = "[ $SEXTON_ATTEMPT = 1 ] && { trap '' TERM; while :; do sleep 0.1; done; }";
    let (platform, ledger, [_scheduler, mut stopping]) = at_work(deaf, "200").await;
    stopping.terminate();
    assert!(stopping.exit(FINAL_TIMEOUT).await.success(), "{}", stopping.log());
    // Settled by the worker before it ended, not by the rescuer after the lease.
    let waits = format!("sexton.executions WHERE state = 'retrying' AND attempt = 2 AND {UNPAID}");
    assert_eq!(count(&platform, &waits).await, 1);
    let interrupted =
        "sexton.all_attempts WHERE outcome = 'interrupted' AND error_class = 'interrupted'";
    assert_eq!(count(&platform, interrupted).await, 1);
    let _other = platform.start_worker("w2", &[]).unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 2", 1).await;
    ledger.no_overlap();
    assert_eq!(ledger.lines("end").len(), 1);
}
