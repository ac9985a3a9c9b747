//! The worker, with a message that opens nothing: passed on, given up, taken over.

use super::plan::{FALLS_DUE, SELDOM};
use super::{JOB, Scene, count, until};
use crate::bad_input::wire::Message;

const DONE_AT_FIRST: &str = "state = 'succeeded' AND attempt = 1";

#[tokio::test]
async fn worker_skipped() {
    let scene = Scene::new(&format!("{SELDOM}\nstale_after = \"1s\""), ":").await;
    assert_eq!(scene.sql(FALLS_DUE).await, 1);
    scene.published("state = 'pending'", 1).await;
    scene.until("state = 'pending' AND scheduled_for < now() - interval '1 second'", 1).await;
    scene.worker_dies("worker.skipped", &[]).await;
    scene.holds("state = 'skipped' AND skip_reason = 'stale' AND finished_at IS NOT NULL", 1).await;
    scene.waits(scene.wire.main(), 1).await;
    scene.ends(scene.successors(), "worker.skipped", "state = 'skipped'", [0, 0]).await;
    assert_eq!(count(&scene.platform, "sexton.all_attempts").await, 0);
    let shown = scene.platform.sexton(&["executions", "list", "--job", JOB]).await;
    assert!(shown.stdout.contains("stale"), "{shown}");
}

#[tokio::test]
async fn worker_gave_up() {
    let scene = Scene::plain().await;
    scene.ticket().await;
    let changed = scene.sql(
        "UPDATE sexton.executions SET task_type = 'unheard',
             next_attempt_at = next_attempt_at - interval '61 minutes'",
    );
    assert_eq!(changed.await, 1);
    scene.worker_dies("worker.gave_up", &[]).await;
    scene.holds("state = 'failed' AND attempt = 2 AND ticket_published_at IS NULL", 1).await;
    scene.waits(scene.wire.main(), 1).await;
    let parked = "state = 'failed' AND ticket_published_at IS NOT NULL";
    scene.ends(scene.successors(), "worker.gave_up", parked, [0, 0]).await;
    scene.waits(scene.wire.failed(), 1).await;
}

#[tokio::test]
async fn worker_moved() {
    let scene = Scene::plain().await;
    scene.ticket().await;
    let early = "UPDATE sexton.executions SET next_attempt_at = now() + interval '45 seconds'";
    assert_eq!(scene.sql(early).await, 1);
    scene.worker_dies("worker.moved", &[]).await;
    scene.holds("state = 'pending' AND attempt = 1", 1).await;
    // The redelivered original, and its copy out of the delay queue.
    scene.waits(scene.wire.main(), 2).await;
    scene.sql("UPDATE sexton.executions SET next_attempt_at = now()").await;
    scene.ends(scene.successors(), "worker.moved", DONE_AT_FIRST, [1, 1]).await;
}

#[tokio::test]
async fn worker_handed_back() {
    let scene = Scene::plain().await;
    scene.ticket().await;
    let ticket = scene.wire.take(scene.wire.main()).await.unwrap();
    let early = "UPDATE sexton.executions SET next_attempt_at = now() + interval '45 seconds'";
    assert_eq!(scene.sql(early).await, 1);
    let env = [("FAULT_POINT", "worker.handed_back"), ("WORKER_SLOTS", "1")];
    let mut doomed = scene.platform.start_worker("w1", &env).unwrap();
    doomed.ready().await;
    scene.delete(scene.wire.waiting()).await;
    let ticket = Message::new(ticket.body).id(ticket.id.unwrap()).header("sexton-attempt", 1);
    scene.wire.send(&[ticket.header("sexton-schema", 1)]).await;
    super::died(&mut doomed, "worker.handed_back").await;
    let unpublished = "state = 'pending' AND attempt = 1 AND ticket_published_at IS NULL
        AND relay_after = next_attempt_at";
    scene.holds(unpublished, 1).await;
    scene.waits(scene.wire.main(), 1).await;
    scene.sql("UPDATE sexton.executions SET next_attempt_at = now()").await;
    scene.time_passes().await;
    // The redelivered message and the one that the relay publishes are the same ticket.
    scene.ends(scene.successors(), "worker.handed_back", DONE_AT_FIRST, [1, 1]).await;
}

#[tokio::test]
async fn worker_set_aside() {
    let scene = Scene::plain().await;
    let env =
        [("FAULT_POINT", "worker.set_aside"), ("WORKER_SLOTS", "1"), ("SET_ASIDE_MS", "1000")];
    let mut doomed = scene.platform.start_worker("w1", &env).unwrap();
    doomed.ready().await;
    scene.delete(scene.wire.failed()).await;
    scene.wire.send(&[Message::new("not JSON")]).await;
    super::died(&mut doomed, "worker.set_aside").await;
    // The redelivered original, and its copy.
    scene.waits(scene.wire.main(), 2).await;
    let mut heir = scene.platform.start_worker("w1", &[]).unwrap();
    heir.ready().await;
    scene.waits(scene.wire.failed(), 2).await;
    scene.waits(scene.wire.main(), 0).await;
    for _ in 0..2 {
        assert_eq!(scene.wire.take(scene.wire.failed()).await.unwrap().body, b"not JSON");
    }
}

#[tokio::test]
async fn worker_adopted() {
    let scene = Scene::plain().await;
    let env = [("FAULT_POINT", "worker.adopted")];
    let mut doomed = scene.platform.start_worker("w1", &env).unwrap();
    doomed.ready().await;
    scene.wire.send(&[Message::new(r#"{"type":"work"}"#).id("order-7")]).await;
    super::died(&mut doomed, "worker.adopted").await;
    scene.holds("state = 'pending' AND attempt = 1 AND execution_key = 'order-7'", 1).await;
    scene.waits(scene.wire.main(), 1).await;
    // The message id is the key: the redelivered message finds its execution.
    scene.ends(scene.successors(), "worker.adopted", DONE_AT_FIRST, [1, 1]).await;
    scene.holds("true", 1).await;
}

#[tokio::test]
async fn worker_adopted_published() {
    let scene = Scene::plain().await;
    // One slot, so that no other takes the newly published ticket.
    let env = [("FAULT_POINT", "worker.adopted_published"), ("WORKER_SLOTS", "1")];
    let mut doomed = scene.platform.start_worker("w1", &env).unwrap();
    doomed.ready().await;
    scene.wire.send(&[Message::new(r#"{"type":"work"}"#)]).await;
    super::died(&mut doomed, "worker.adopted_published").await;
    scene.holds("state = 'pending' AND ticket_published_at IS NOT NULL", 1).await;
    // The unacknowledged message, and the ticket of the execution that the worker made of it.
    scene.waits(scene.wire.main(), 2).await;
    let successors = scene.successors();
    // Without an id the redelivery cannot be recognised: a second execution, and each runs once.
    until(&scene.platform, "sexton.executions", 2).await;
    scene.ends(successors, "worker.adopted_published", DONE_AT_FIRST, [1, 1]).await;
    scene.holds("true", 2).await;
}
