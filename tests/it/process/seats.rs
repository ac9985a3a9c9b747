//! A restarted worker knows that its predecessor is dead.

use sexton_tests::platform::Platform;

use super::ledger::Ledger;
use super::{IN_THE_END, by_hand, count, until};

#[tokio::test]
async fn a_restarted_worker_ends_its_predecessor_s_attempts_before_their_lease_is_over() {
    let mut platform = Platform::new().await.unwrap();
    let ledger = Ledger::new(&platform, "[ $SEXTON_ATTEMPT = 1 ] && sleep 3000");
    platform.catalogue(&ledger.catalogue());
    // An hour: nobody waits for this lease in a test.
    platform.apply(&by_hand("a.b", "work", "lease = \"1h\"")).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut first = platform.start_worker("w1", &[]).unwrap();
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    platform
        .eventually("the task has begun", IN_THE_END, async || ledger.lines("begin").pop())
        .await;

    // A stranger with another name knows nothing of the first, alive or dead.
    let mut stranger = platform.start_worker("w2", &[]).unwrap();
    stranger.ready().await;
    // One of the same name, while the first lives, must not take it for dead.
    let mut twin = platform.start_worker("w1", &[]).unwrap();
    twin.ready().await;
    assert_eq!(count(&platform, "executions WHERE state = 'running'").await, 1);

    first.kill();
    until(&platform, "attempts WHERE outcome = 'lost'", 1).await;
    until(&platform, "executions WHERE state = 'succeeded' AND attempt = 2", 1).await;
    ledger.no_overlap();
}
