//! Questions that wait for a worker that is not there, or that must not be there: the bulk's commands say so.

use serde_json::{Value, json};

use super::{CATALOGUE, Scene};
use crate::cli::following_command::FollowingCommand;
use crate::process::{FINAL_TIMEOUT, until};

const REQUEUE: [&str; 5] = ["failed", "requeue", "--all", "--yes", "--detach"];

#[tokio::test]
async fn a_bulk_shows_that_no_worker_of_the_pool_offers_its_verify_task() {
    let mut scene = Scene::failed(&["no-1"]).await;
    let _scheduler = scene.platform.start_scheduler("s1", &[]).unwrap();
    // It offers the task, in another pool.
    let mut other = scene.platform.start_worker("w1", &[("WORKER_POOLS", "other")]).unwrap();
    other.ready().await;
    scene.sexton(&REQUEUE, 0).await;
    until(&scene.platform, "sexton.bulk_questions", 1).await;
    let text = "1 question waits: no worker at work in pool default offers charged";
    let stdout = scene.sexton(&["bulks", "show", "1"], 0).await;
    assert!(stdout.contains(text), "{stdout}");
    let stdout = scene.sexton(&["bulks", "list"], 0).await;
    assert!(stdout.contains("waits for workers"), "{stdout}");
    let expected = json!([{"task_type": "charged", "pool": "default", "questions": 1}]);
    assert_eq!(scene.bulk("1").await["waits"]["unheard"], expected);
    let url = scene.platform.database_url().to_owned();
    let mut watched = FollowingCommand::start(&url, &["bulks", "watch", "1"]);
    let warning = watched.warning().await;
    assert!(warning.contains("bulk 1: ") && warning.contains(text), "{warning}");
    scene.platform.catalogue(CATALOGUE);
    let _worker = scene.platform.start_worker("w2", &[]).unwrap();
    assert_eq!(watched.line().await, "Bulk 1: 1 of 1 requeued.");
    assert_eq!(watched.end().await, 0);
    assert_eq!(scene.bulk("1").await["waits"], Value::Null);
    let stdout = scene.sexton(&["bulks", "list"], 0).await;
    assert!(!stdout.contains("waits"), "{stdout}");
}

#[tokio::test]
async fn a_bulk_shows_the_old_worker_that_blocks_it() {
    let scene = Scene::failed(&["no-1"]).await;
    let _scheduler = scene.platform.start_scheduler("s1", &[]).unwrap();
    let _worker = scene.platform.start_worker("w1", &[]).unwrap();
    let old = "INSERT INTO sexton.instances (id, kind, name, pid, version, pools, started_at, heartbeat_at)
        VALUES (gen_random_uuid(), 'worker', 'w0.old', 1, '0.0.1', '{default}', now(), now() + interval '1 day')";
    sqlx::query(old).execute(scene.platform.store().pool()).await.unwrap();
    scene.sexton(&REQUEUE, 0).await;
    let text = "no verify task runs until worker w0.old 0.0.1 is replaced";
    scene
        .platform
        .eventually("show tells of the old worker", FINAL_TIMEOUT, async || {
            let stdout = scene.sexton(&["bulks", "show", "1"], 0).await;
            stdout.contains(text).then_some(())
        })
        .await;
    assert_eq!(scene.bulk("1").await["waits"]["old_workers"], json!(["w0.old 0.0.1"]));
    let url = scene.platform.database_url().to_owned();
    let mut watched = FollowingCommand::start(&url, &["bulks", "watch", "1"]);
    assert!(watched.warning().await.contains(text));
    until(&scene.platform, "sexton.bulk_questions", 0).await;
    let gone = "UPDATE sexton.instances SET stopped_at = now() WHERE name = 'w0.old'";
    sqlx::query(gone).execute(scene.platform.store().pool()).await.unwrap();
    assert_eq!(watched.line().await, "Bulk 1: 1 of 1 requeued.");
    assert_eq!(watched.end().await, 0);
}
