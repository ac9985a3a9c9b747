//! Bulks: the command dead when it has asked, and schedulers dead in the middle of carrying it out.

use super::{Scene, count};

const DONE: &str = "state = 'succeeded' AND attempt = 1";
const ALL: [&str; 4] = ["failed", "requeue", "--all", "--yes"];

/// Two that failed, and a bulk that is to requeue them; nobody is at work.
async fn asked() -> Scene {
    let scene = Scene::plain().await;
    scene.parked(2).await;
    let told = scene.command(&ALL).await;
    assert!(told.status.success() && told.stdout.contains("no scheduler is at work"), "{told}");
    scene
}

#[tokio::test]
async fn console_bulk_asked() {
    let scene = Scene::plain().await;
    scene.parked(2).await;
    scene.console_dies("console.bulk_asked", &ALL).await;
    scene.holds("state = 'failed'", 2).await;
    assert_eq!(count(&scene.platform, "bulks WHERE state = 'preparing'").await, 1);
    scene.ends(scene.successors(), "console.bulk_asked", DONE, [1, 1]).await;
    assert_eq!((scene.deeds("requeue").await, scene.deeds("bulk").await), (2, 1));
}

#[tokio::test]
async fn console_bulk_stopped() {
    let scene = asked().await;
    let command = ["failed", "bulk", "stop", "1", "--reason", "wrong ones"];
    scene.console_dies("console.bulk_stopped", &command).await;
    assert_eq!(count(&scene.platform, "bulks WHERE state = 'stopped'").await, 1);
    assert_eq!(scene.command(&command).await.status.code(), Some(4), "it is stopped already");
    let parked = "state = 'failed' AND ticket_published_at IS NOT NULL";
    scene.ends(scene.successors(), "console.bulk_stopped", parked, [0, 0]).await;
    assert_eq!((scene.deeds("requeue").await, scene.deeds("bulk_stop").await), (0, 1));
}

#[tokio::test]
async fn console_bulk_resumed() {
    let scene = asked().await;
    assert!(scene.command(&["failed", "bulk", "stop", "1"]).await.status.success());
    let command = ["failed", "bulk", "resume", "1"];
    scene.console_dies("console.bulk_resumed", &command).await;
    assert_eq!(scene.command(&command).await.status.code(), Some(4), "it goes on already");
    scene.ends(scene.successors(), "console.bulk_resumed", DONE, [1, 1]).await;
    assert_eq!(scene.deeds("requeue").await, 2);
}

#[tokio::test]
async fn scheduler_bulk_prepared() {
    let scene = asked().await;
    scene.scheduler_dies("scheduler.bulk_prepared").await;
    scene.holds("state = 'failed'", 2).await;
    assert_eq!(count(&scene.platform, "bulks WHERE state = 'running' AND selected = 2").await, 1);
    scene.ends(scene.successors(), "scheduler.bulk_prepared", DONE, [1, 1]).await;
    assert_eq!((count(&scene.platform, "bulk_items").await, scene.deeds("requeue").await), (2, 2));
}

#[tokio::test]
async fn scheduler_bulk_carried() {
    let scene = asked().await;
    scene.scheduler_dies("scheduler.bulk_carried").await;
    scene.holds("state = 'pending' AND ticket_published_at IS NULL", 2).await;
    assert_eq!((scene.deeds("requeue").await, tickets(&scene).await), (2, 0));
    assert_eq!(count(&scene.platform, "bulks WHERE done = 2").await, 1);
    scene.ends(scene.successors(), "scheduler.bulk_carried", DONE, [1, 1]).await;
    assert_eq!(scene.deeds("requeue").await, 2);
}

#[tokio::test]
async fn scheduler_bulk_published() {
    let scene = asked().await;
    scene.scheduler_dies("scheduler.bulk_published").await;
    scene.holds("state = 'pending' AND ticket_published_at IS NULL", 2).await;
    scene.waits(scene.wire.main(), 2).await;
    scene.ends(scene.successors(), "scheduler.bulk_published", DONE, [1, 1]).await;
    assert_eq!(scene.deeds("requeue").await, 2);
}

async fn tickets(scene: &Scene) -> u32 {
    scene.wire.depth(scene.wire.main()).await
}
