//! The worker, with a task that is a statement: between the statement, its record and their commit.

use super::{Scene, count};

const RUNS: &str = "state = 'running' AND attempt = 1";

impl Scene {
    /// Whose task writes a row, which counts its effects.
    async fn with_statement() -> Self {
        let mut scene = Self::plain().await;
        scene.sql("CREATE TABLE effects (key text)").await;
        scene.platform.catalogue("[tasks.work]\nsql = \"insert into effects values ($2)\"\n");
        scene.ticket().await;
        scene
    }

    async fn effects(&self) -> i64 {
        count(&self.platform, "effects").await
    }
}

#[tokio::test]
async fn worker_sql_ran() {
    let scene = Scene::with_statement().await;
    scene.worker_dies("worker.sql_ran", &[]).await;
    scene.holds(RUNS, 1).await;
    assert_eq!(scene.effects().await, 0);
    let done = "state = 'succeeded' AND attempt = 2";
    scene.ends(scene.successors(), "worker.sql_ran", done, [0, 0]).await;
    assert_eq!(scene.effects().await, 1);
}

#[tokio::test]
async fn worker_sql_settled() {
    let scene = Scene::with_statement().await;
    scene.worker_dies("worker.sql_settled", &[]).await;
    scene.holds(RUNS, 1).await;
    assert_eq!(scene.effects().await, 0);
    let done = "state = 'succeeded' AND attempt = 2";
    scene.ends(scene.successors(), "worker.sql_settled", done, [0, 0]).await;
    assert_eq!(scene.effects().await, 1);
}

#[tokio::test]
async fn worker_sql_committed() {
    let scene = Scene::with_statement().await;
    scene.worker_dies("worker.sql_committed", &[]).await;
    let done = "state = 'succeeded' AND attempt = 1";
    scene.holds(done, 1).await;
    assert_eq!(scene.effects().await, 1);
    scene.ends(scene.successors(), "worker.sql_committed", done, [0, 0]).await;
    assert_eq!(scene.effects().await, 1);
    assert_eq!(count(&scene.platform, "sexton.all_attempts").await, 1);
}
