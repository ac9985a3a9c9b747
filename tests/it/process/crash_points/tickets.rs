//! The worker, with a ticket in hand: from the delivery to the acknowledgement.

use std::time::Duration;

use super::{FINAL_TIMEOUT, Scene, count, until};

const WAITS: &str = "state = 'pending' AND attempt = 1 AND ticket_published_at IS NOT NULL";
const RUNS: &str = "state = 'running' AND attempt = 1";
const DONE_AT_FIRST: &str = "state = 'succeeded' AND attempt = 1";
const DONE_AT_SECOND: &str = "state = 'succeeded' AND attempt = 2";

#[tokio::test]
async fn worker_received() {
    let scene = Scene::plain().await;
    scene.ticket().await;
    scene.worker_dies("worker.received", &[]).await;
    scene.holds(WAITS, 1).await;
    scene.waits(scene.wire.main(), 1).await;
    scene.ends(scene.successors(), "worker.received", DONE_AT_FIRST, [1, 1]).await;
}

#[tokio::test]
async fn worker_opened() {
    let scene = Scene::plain().await;
    scene.ticket().await;
    scene.worker_dies("worker.opened", &[]).await;
    scene.holds(RUNS, 1).await;
    assert!(scene.ledger.runs().is_empty(), "no task has begun");
    scene.ends(scene.successors(), "worker.opened", DONE_AT_SECOND, [1, 1]).await;
}

#[tokio::test]
async fn worker_renewed_first() {
    let scene = Scene::plain().await;
    scene.ticket().await;
    // Somebody keeps the row locked, from before the worker asks for it to more than a quarter of
    // the lease after: such an open is not taken for fresh. The worker is patient for a whole one, so
    // a slow machine has most of a lease to look.
    let mut locked = scene.platform.store().pool().begin().await.unwrap();
    sqlx::query("SELECT FROM sexton.executions FOR UPDATE").execute(&mut *locked).await.unwrap();
    let env =
        [("LEASE_MS", "24000"), ("WORKER_SLOTS", "1"), ("FAULT_POINT", "worker.renewed_first")];
    let mut doomed = scene.platform.start_worker("w1", &env).unwrap();
    let slow_query = "pg_stat_activity WHERE datname = current_database()
         AND query ~ '^-- (open_attempts|recover_attempts|look_at_unopened)'";
    let is_running = async || (count(&scene.platform, slow_query).await > 0).then_some(());
    scene.platform.eventually("the worker has asked", FINAL_TIMEOUT, is_running).await;
    // Nothing is waited for here: that this time passes while the worker waits is what is tested.
    tokio::time::sleep(Duration::from_millis(6_500)).await;
    locked.rollback().await.unwrap();
    super::died(&mut doomed, "worker.renewed_first").await;
    scene.holds(RUNS, 1).await;
    assert!(scene.ledger.runs().is_empty(), "no task has begun");
    scene.ends(scene.successors(), "worker.renewed_first", DONE_AT_SECOND, [1, 1]).await;
}

#[tokio::test]
async fn worker_settled() {
    let scene = Scene::retried().await;
    scene.ticket().await;
    scene.worker_fails_and_dies("worker.settled").await;
    scene.holds("state = 'retrying' AND attempt = 2 AND ticket_published_at IS NULL", 1).await;
    assert_eq!(scene.ledger.only().begun, 1);
    scene.waits(scene.wire.main(), 1).await;
    scene.time_passes().await;
    scene.ends(scene.successors(), "worker.settled", DONE_AT_SECOND, [2, 1]).await;
}

#[tokio::test]
async fn worker_published() {
    let scene = Scene::retried().await;
    scene.ticket().await;
    scene.worker_fails_and_dies("worker.published").await;
    scene.holds("state = 'retrying' AND attempt = 2 AND ticket_published_at IS NULL", 1).await;
    // The spent ticket, which was not acknowledged, and the next one out of the delay queue.
    scene.waits(scene.wire.main(), 2).await;
    // The relay adds a second copy of the latter.
    scene.time_passes().await;
    scene.published("state = 'retrying'", 1).await;
    scene.waits(scene.wire.main(), 3).await;
    scene.ends(scene.successors(), "worker.published", DONE_AT_SECOND, [2, 1]).await;
}

#[tokio::test]
async fn worker_marked() {
    let scene = Scene::retried().await;
    scene.ticket().await;
    scene.worker_fails_and_dies("worker.marked").await;
    scene.holds("state = 'retrying' AND attempt = 2 AND ticket_published_at IS NOT NULL", 1).await;
    scene.waits(scene.wire.main(), 2).await;
    scene.ends(scene.successors(), "worker.marked", DONE_AT_SECOND, [2, 1]).await;
}

#[tokio::test]
async fn worker_acked() {
    let scene = Scene::plain().await;
    scene.ticket().await;
    scene.worker_dies("worker.acked", &[]).await;
    scene.holds(DONE_AT_FIRST, 1).await;
    assert_eq!(scene.ledger.only().ended, 1);
    scene.ends(scene.successors(), "worker.acked", DONE_AT_FIRST, [1, 1]).await;
}

/// With several tickets at hand, the ended attempt's is not acknowledged yet.
#[tokio::test]
async fn worker_acked_with_several_tickets() {
    const TICKETS: i64 = 6;
    let scene = Scene::new("overlap = \"allow\"", ":").await;
    for key in 1..=TICKETS {
        let key = key.to_string();
        let done = scene.platform.sexton(&["jobs", "trigger", super::JOB, "--key", &key]).await;
        assert!(done.status.success(), "{done}");
    }
    scene.published("state = 'pending'", TICKETS).await;
    let many = [("WORKER_PREFETCH", "16")];
    scene.worker_dies("worker.acked", &many).await;
    scene.holds(DONE_AT_FIRST, 1).await;
    scene.waits(scene.wire.main(), u32::try_from(TICKETS).unwrap()).await;
    let successors = scene.successors_of(&[], &many);
    scene.ends(successors, "worker.acked", DONE_AT_FIRST, [1, 1]).await;
}

#[tokio::test]
async fn worker_instance_locked() {
    let scene = Scene::plain().await;
    scene.abandoned("20000").await;
    scene.worker_dies("worker.instance_locked", &[]).await;
    scene.holds(RUNS, 1).await;
    scene.ends(scene.successors(), "worker.instance_locked", DONE_AT_SECOND, [1, 1]).await;
}

#[tokio::test]
async fn worker_inherited() {
    let scene = Scene::plain().await;
    scene.abandoned("20000").await;
    scene.worker_dies("worker.inherited", &[]).await;
    scene.holds("state = 'retrying' AND attempt = 2 AND ticket_published_at IS NULL", 1).await;
    let unended = "sexton.instances WHERE kind = 'worker' AND stopped_at IS NULL";
    assert_eq!(count(&scene.platform, unended).await, 2, "both that died");
    let successors = scene.successors();
    until(&scene.platform, unended, 1).await;
    scene.ends(successors, "worker.inherited", DONE_AT_SECOND, [1, 1]).await;
}
