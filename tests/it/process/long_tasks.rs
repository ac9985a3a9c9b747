//! A task that takes longer than the broker lets a consumer hold its message.

use sexton_tests::platform::Platform;

use super::ledger::Ledger;
use super::{FINAL_TIMEOUT, by_hand, count, until};
use crate::bad_input::wire::Wire;

#[tokio::test]
async fn a_slot_acknowledges_a_long_task_s_ticket_early_and_consumes_again_afterwards() {
    let mut platform = Platform::new().await.unwrap();
    let ledger = Ledger::new(&platform, "while ! test -e go; do sleep 0.05; done");
    platform.catalogue(&ledger.catalogue());
    platform.apply(&by_hand("a.b", "work", "")).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let env = [("WORKER_SLOTS", "1"), ("ACK_DEADLINE_MS", "500")];
    let mut worker = platform.start_worker("w1", &env).unwrap();
    let wire = Wire::connect(&platform).await;
    platform.sexton(&["jobs", "trigger", "a.b", "--key", "long"]).await;
    platform
        .eventually("the task has begun", FINAL_TIMEOUT, async || ledger.lines("begin").pop())
        .await;
    let consumers = async |wanted| {
        let look = async || (wire.consumers(wire.main()).await == wanted).then_some(());
        platform.eventually(&format!("{wanted} consumers"), FINAL_TIMEOUT, look).await;
    };
    // The slot consumes nothing meanwhile, and its ticket does not come back.
    consumers(0).await;
    platform.sexton(&["jobs", "trigger", "a.b", "--key", "next"]).await;
    until(&platform, "sexton.executions WHERE ticket_published_at IS NOT NULL", 2).await;
    let next_waits = async || (wire.depth(wire.main()).await == 1).then_some(());
    platform.eventually("the next ticket waits", FINAL_TIMEOUT, next_waits).await;
    assert_eq!(count(&platform, "sexton.executions WHERE state = 'running'").await, 1);

    std::fs::write(platform.folder().join("go"), "").unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 1", 2).await;
    consumers(1).await;
    worker.terminate();
    assert!(worker.exit(FINAL_TIMEOUT).await.success());
    assert_eq!(wire.depth(wire.main()).await, 0);
    assert_eq!(ledger.lines("end").len(), 2);
    ledger.no_overlap();
}
