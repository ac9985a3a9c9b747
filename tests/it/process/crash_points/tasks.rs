//! The worker, with a task under way: from its guard to its end.

use super::{FINAL_TIMEOUT, Scene, count, died, until};

const RUNS: &str = "state = 'running' AND attempt = 1";
const DONE_AT_SECOND: &str = "state = 'succeeded' AND attempt = 2";

#[tokio::test]
async fn worker_guarded() {
    let scene = Scene::plain().await;
    scene.ticket().await;
    scene.worker_dies("worker.guarded", &[]).await;
    scene.holds(RUNS, 1).await;
    assert!(scene.ledger.runs().is_empty(), "the guard received no task");
    scene.ends(scene.successors(), "worker.guarded", DONE_AT_SECOND, [1, 1]).await;
}

#[tokio::test]
async fn worker_started() {
    // Nobody waits for such a lease: the successor must know that the task is dead.
    let scene = Scene::endless("lease = \"1h\"").await;
    scene.ticket().await;
    scene.worker_dies("worker.started", &[]).await;
    scene.holds(RUNS, 1).await;
    scene.ends(scene.successors(), "worker.started", DONE_AT_SECOND, [1, 1]).await;
    // The task that had started was killed with its worker.
    assert_eq!(scene.ledger.only().ended, 1);
}

#[tokio::test]
async fn worker_renewed() {
    let scene = Scene::endless("").await;
    scene.ticket().await;
    // It renews after 6 s, and would not kill the task before 22 s.
    scene.worker_dies("worker.renewed", &[("LEASE_MS", "24000")]).await;
    scene.holds(RUNS, 1).await;
    // However soon that was: the open's lease ends exactly 24 s after the beginning.
    scene.holds("lease_until > started_at + interval '24 seconds'", 1).await;
    scene.ends(scene.successors(), "worker.renewed", DONE_AT_SECOND, [1, 1]).await;
    assert_eq!(scene.ledger.only().ended, 1);
}

#[tokio::test]
async fn worker_streamed() {
    let script = "echo begun $SEXTON_ATTEMPT; [ $SEXTON_ATTEMPT = 1 ] && sleep 3000";
    let scene = Scene::new("lease = \"1h\"", script).await;
    scene.ticket().await;
    scene.worker_dies("worker.streamed", &[]).await;
    scene.holds(RUNS, 1).await;
    let part = "sexton.attempt_output WHERE number = 1 AND content LIKE '% begun 1'";
    assert_eq!(count(&scene.platform, part).await, 1);
    scene.ends(scene.successors(), "worker.streamed", DONE_AT_SECOND, [1, 1]).await;
    assert_eq!(scene.ledger.only().ended, 1);
    // What was stored of the lost attempt stays, and the other's has its own place.
    assert_eq!(count(&scene.platform, part).await, 1);
    until(
        &scene.platform,
        "sexton.attempt_output WHERE number = 2 AND content LIKE '% begun 2'",
        1,
    )
    .await;
}

#[tokio::test]
async fn worker_let_go() {
    let scene = Scene::endless("lease = \"1h\"").await;
    scene.ticket().await;
    scene.worker_dies("worker.let_go", &[("ACK_DEADLINE_MS", "500")]).await;
    scene.holds(RUNS, 1).await;
    scene.ends(scene.successors(), "worker.let_go", DONE_AT_SECOND, [1, 1]).await;
    assert_eq!(scene.ledger.only().ended, 1);
}

#[tokio::test]
async fn worker_stopping() {
    let scene = Scene::endless("").await;
    scene.ticket().await;
    let env = [("FAULT_POINT", "worker.stopping")];
    let mut doomed = scene.platform.start_worker("w1", &env).unwrap();
    scene.begun().await;
    let id = scene.id().await;
    let done = scene.platform.sexton(&["executions", "cancel", &id]).await;
    assert!(done.status.success(), "{done}");
    died(&mut doomed, "worker.stopping").await;
    scene.holds("state = 'running' AND attempt = 1 AND cancel_requested", 1).await;
    // The row ends without its ticket, which the broker gives back in its own time.
    let successors = scene.successors_of(&[], &[("RUST_LOG", "info,sexton_worker=debug")]);
    let seen = async || successors.worker.log().contains("a ticket opened nothing").then_some(());
    scene.platform.eventually("the spent ticket has been seen", FINAL_TIMEOUT, seen).await;
    scene.ends(successors, "worker.stopping", "state = 'cancelled'", [1, 0]).await;
    assert_eq!(count(&scene.platform, "sexton.all_attempts").await, 1);
}

#[tokio::test]
async fn worker_ran() {
    let scene = Scene::plain().await;
    scene.ticket().await;
    scene.worker_dies("worker.ran", &[]).await;
    scene.holds(RUNS, 1).await;
    assert_eq!(scene.ledger.only().ended, 1, "its effects have happened");
    scene.ends(scene.successors(), "worker.ran", DONE_AT_SECOND, [1, 1]).await;
    // That is what at least once means: nobody knew, so the same key has them twice.
    assert_eq!(scene.ledger.only().ended, 2);
}

#[tokio::test]
async fn worker_late() {
    let scene = Scene::endless("").await;
    scene.ticket().await;
    let env = [("FAULT_POINT", "worker.late"), ("LEASE_MS", "5000"), ("WORKER_SLOTS", "1")];
    let mut doomed = scene.platform.start_worker("w1", &env).unwrap();
    scene.begun().await;
    doomed.pause();
    let mut other = scene.platform.start_scheduler("s1", &[]).unwrap();
    until(&scene.platform, "sexton.all_attempts WHERE outcome = 'lost'", 1).await;
    other.kill();
    doomed.resume();
    died(&mut doomed, "worker.late").await;
    scene.holds("state = 'retrying' AND attempt = 2", 1).await;
    assert_eq!(
        count(&scene.platform, "sexton.all_attempts WHERE late_outcome IS NOT NULL").await,
        1
    );
    scene.time_passes().await;
    scene.ends(scene.successors(), "worker.late", DONE_AT_SECOND, [2, 1]).await;
}

impl Scene {
    /// Waits until the task has begun.
    async fn begun(&self) {
        let look = async || self.ledger.lines("begin").pop();
        self.platform.eventually("the task has begun", FINAL_TIMEOUT, look).await;
    }
}
