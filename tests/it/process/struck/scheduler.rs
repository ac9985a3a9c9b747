//! The scheduler, with owed, lost and abandoned tickets: relay, rescuer, reconciler.

use lapin::options::{QueueDeleteOptions, QueuePurgeOptions};
use sexton_broker::names;

use super::{Scene, died};

const OWES: &str = "state = 'pending' AND attempt = 1 AND ticket_published_at IS NULL";
const PUBLISHED: &str = "state = 'pending' AND attempt = 1 AND ticket_published_at IS NOT NULL";
const DONE_AT_FIRST: &str = "state = 'succeeded' AND attempt = 1";

/// For the rows: the reconciler is patient for five.
const TEN_MINUTES_PASS: &str = "UPDATE executions
     SET next_attempt_at = next_attempt_at - interval '10 minutes',
         ticket_published_at = ticket_published_at - interval '10 minutes'";

#[tokio::test]
async fn scheduler_relay_taken() {
    let scene = Scene::plain().await;
    scene.trigger().await;
    scene.scheduler_dies("scheduler.relay_taken").await;
    scene.holds(&format!("{OWES} AND relay_after > now() + interval '10 seconds'"), 1).await;
    assert_eq!(scene.wire.depth(scene.wire.main()).await, 0, "it was not published");
    scene.time_passes().await;
    scene.ends(scene.successors(), "scheduler.relay_taken", DONE_AT_FIRST, [1, 1]).await;
}

#[tokio::test]
async fn scheduler_relayed() {
    let scene = Scene::plain().await;
    scene.trigger().await;
    scene.scheduler_dies("scheduler.relayed").await;
    scene.holds(OWES, 1).await;
    scene.waits(scene.wire.main(), 1).await;
    scene.time_passes().await;
    scene.published("state = 'pending'", 1).await;
    scene.waits(scene.wire.main(), 2).await;
    scene.ends(scene.successors(), "scheduler.relayed", DONE_AT_FIRST, [1, 1]).await;
}

#[tokio::test]
async fn scheduler_relay_marked() {
    let scene = Scene::plain().await;
    let env = [("FAULT_POINT", "scheduler.relay_marked")];
    let mut doomed = scene.platform.start_scheduler("s1", &env).unwrap();
    doomed.ready().await;
    // A message for a queue that is gone comes back: it is refused, and has to wait.
    let gone = QueueDeleteOptions::default();
    scene.wire.channel().queue_delete(scene.wire.main().into(), gone).await.unwrap();
    scene.trigger().await;
    died(&mut doomed, "scheduler.relay_marked").await;
    scene.holds(OWES, 1).await;
    scene.time_passes().await;
    scene.ends(scene.successors(), "scheduler.relay_marked", DONE_AT_FIRST, [1, 1]).await;
}

#[tokio::test]
async fn scheduler_rescued() {
    let scene = Scene::plain().await;
    scene.abandoned("1000").await;
    scene.until("state = 'running' AND lease_until < now()", 1).await;
    scene.scheduler_dies("scheduler.rescued").await;
    scene.holds("state = 'retrying' AND attempt = 2 AND ticket_published_at IS NULL", 1).await;
    let done = "state = 'succeeded' AND attempt = 2";
    scene.ends(scene.successors(), "scheduler.rescued", done, [1, 1]).await;
}

#[tokio::test]
async fn scheduler_declared() {
    // A pool that a scheduler which has just started does not know of.
    let scene = Scene::new("pool = \"far\"", ":").await;
    scene.ticket().await;
    let far = names::main_queue(scene.platform.namespace(), &"far".parse().unwrap());
    let gone = QueueDeleteOptions::default();
    scene.wire.channel().queue_delete((*far).into(), gone).await.unwrap();
    scene.sql(TEN_MINUTES_PASS).await;
    scene.scheduler_dies("scheduler.declared").await;
    scene.holds(PUBLISHED, 1).await;
    assert_eq!(scene.wire.depth(&far).await, 0, "it is there again, and empty");
    let successors = scene.successors_of(&[], &[("WORKER_POOLS", "far")]);
    scene.ends(successors, "scheduler.declared", DONE_AT_FIRST, [1, 1]).await;
    assert_eq!(scene.wire.depth(&far).await, 0);
}

#[tokio::test]
async fn scheduler_owed_again() {
    let scene = Scene::plain().await;
    scene.ticket().await;
    let purge = QueuePurgeOptions::default();
    scene.wire.channel().queue_purge(scene.wire.main().into(), purge).await.unwrap();
    scene.sql(TEN_MINUTES_PASS).await;
    scene.scheduler_dies("scheduler.owed_again").await;
    scene.holds(&format!("{OWES} AND reconcile_count = 1"), 1).await;
    scene.ends(scene.successors(), "scheduler.owed_again", DONE_AT_FIRST, [1, 1]).await;
}
