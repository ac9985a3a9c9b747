//! The scheduler, with firings that wait for their job, or replace what runs.

use super::plan::{FALLS_DUE, SELDOM};
use super::{FINAL_TIMEOUT, JOB, Scene, died};

const WAITER: &str = "state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL";

impl Scene {
    /// A job of this policy, whose attempts end once the file `go` is there, and a worker that runs one:
    /// triggered by hand, so that the scheduler that made it passes no point of firings.
    async fn busy(policy: &str) -> (Self, sexton_tests::platform::Program) {
        let until_stopped = "while ! test -e go; do sleep 0.05; done";
        let job = format!("{SELDOM}\noverlap = \"{policy}\"\nlease = \"3s\"");
        let scene = Self::new(&job, until_stopped).await;
        scene.ticket().await;
        let worker = scene.platform.start_worker("w1", &[("WORKER_SLOTS", "1")]).unwrap();
        scene.until("state = 'running'", 1).await;
        let begun = async || scene.ledger.lines("begin").pop();
        scene.platform.eventually("the task has begun", FINAL_TIMEOUT, begun).await;
        assert_eq!(scene.sql(FALLS_DUE).await, 1);
        (scene, worker)
    }

    fn go(&self) {
        std::fs::write(self.platform.folder().join("go"), "").unwrap();
    }
}

#[tokio::test]
async fn scheduler_waiting() {
    let (scene, mut worker) = Scene::busy("replace").await;
    scene.scheduler_dies("scheduler.waiting").await;
    scene.holds(&format!("{WAITER} AND waits = 'replace'"), 1).await;
    // The commit itself notifies the worker: the scheduler is dead.
    scene
        .until("state = 'cancelled' AND outcome = 'replaced' AND replaced_by IS NOT NULL", 1)
        .await;
    worker.terminate();
    assert!(worker.exit(FINAL_TIMEOUT).await.success());
    scene.holds(WAITER, 1).await;
    scene.go();
    let successors = scene.successors();
    // The one that was replaced has begun and not ended.
    scene.ends_as(successors, "scheduler.waiting", ["cancelled", "succeeded"]).await;
    let ended = scene.ledger.lines("end");
    assert!(ended.len() == 1 && ended[0].contains("cron"), "{ended:?}");
}

#[tokio::test]
async fn scheduler_admitting() {
    let (scene, mut worker) = Scene::busy("queue").await;
    let env = [("FAULT_POINT", "scheduler.admitting")];
    let mut doomed = scene.platform.start_scheduler("s1", &env).unwrap();
    scene.until(&format!("{WAITER} AND waits = 'queue'"), 1).await;
    scene.go();
    died(&mut doomed, "scheduler.admitting").await;
    scene.holds("state = 'succeeded'", 1).await;
    scene.holds(WAITER, 1).await;
    worker.terminate();
    assert!(worker.exit(FINAL_TIMEOUT).await.success());
    let done = "state = 'succeeded' AND attempt = 1";
    scene.ends(scene.successors(), "scheduler.admitting", done, [1, 1]).await;
}

#[tokio::test]
async fn scheduler_admitted() {
    let (scene, mut worker) = Scene::busy("queue").await;
    let env = [("FAULT_POINT", "scheduler.admitted")];
    let mut doomed = scene.platform.start_scheduler("s1", &env).unwrap();
    scene.until(WAITER, 1).await;
    scene.go();
    died(&mut doomed, "scheduler.admitted").await;
    let is_unpublished = "state = 'pending' AND waits = 'queue' AND admitted_at IS NOT NULL
         AND ticket_published_at IS NULL";
    scene.holds(is_unpublished, 1).await;
    worker.terminate();
    assert!(worker.exit(FINAL_TIMEOUT).await.success());
    scene.time_passes().await;
    let done = "state = 'succeeded' AND attempt = 1";
    scene.ends(scene.successors(), "scheduler.admitted", done, [1, 1]).await;
    // What both tasks saw: one after the other.
    let [first, second] = <[String; 2]>::try_from(scene.ledger.lines("begin")).unwrap();
    assert!(first.contains(&JOB.replace('.', "_")) && first != second, "{first} {second}");
}
