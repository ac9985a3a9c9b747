//! Bulks: the command dead when it has asked, and schedulers dead in the middle of carrying it out.

use super::{Scene, count, until};

const DONE: &str = "state = 'succeeded' AND attempt = 1";
const ALL: [&str; 4] = ["failed", "requeue", "--all", "--yes"];

/// Two that failed, and a bulk that is to requeue them; nobody is at work.
async fn with_bulk() -> Scene {
    let scene = Scene::plain().await;
    scene.parked(2).await;
    let output = scene.command(&ALL).await;
    assert!(output.status.success() && output.stdout.contains("no scheduler runs"), "{output}");
    scene
}

#[tokio::test]
async fn console_bulk_created() {
    let scene = Scene::plain().await;
    scene.parked(2).await;
    scene.console_dies("console.bulk_created", &ALL).await;
    scene.holds("state = 'failed'", 2).await;
    assert_eq!(count(&scene.platform, "sexton.bulks WHERE state = 'preparing'").await, 1);
    scene.ends(scene.successors(), "console.bulk_created", DONE, [1, 1]).await;
    assert_eq!((scene.action_count("requeue").await, scene.action_count("bulk").await), (2, 1));
}

/// A requeue of two executions with a verify command that died at `point`; no scheduler runs.
async fn dies_verifying(point: &str, command: &str) -> Scene {
    let scene = Scene::plain().await;
    scene.parked(2).await;
    scene.console_dies(point, &[&ALL[..], &["--verify", command]].concat()).await;
    scene
}

/// Asks again, of what nobody has answered for; without a scheduler nobody waits.
async fn verified(scene: &Scene, command: &str) {
    let output = scene.command(&["bulks", "verify", "1", command]).await;
    assert!(output.status.success(), "{output}");
    assert_eq!(count(&scene.platform, "sexton.bulk_items WHERE state = 'unasked'").await, 0);
}

#[tokio::test]
async fn a_command_killed_before_its_verify_answers_leaves_a_waiting_bulk() {
    let scene = dies_verifying("console.bulk_created", "exit 0").await;
    scene.holds("state = 'failed'", 2).await;
    assert_eq!(scene.action_count("bulk_verify").await, 0);
    // A scheduler selects them, and requeues nothing that nobody has answered for.
    let successors = scene.successors();
    until(&scene.platform, "sexton.bulk_items WHERE state = 'unasked'", 2).await;
    let output = scene.command(&["bulks", "verify", "1", "exit 1"]).await;
    assert!(output.status.success(), "{output}");
    scene.ends(successors, "console.bulk_created", DONE, [1, 1]).await;
    assert_eq!(
        (scene.action_count("requeue").await, scene.action_count("bulk_verify").await),
        (2, 1)
    );
}

#[tokio::test]
async fn console_bulk_verifying() {
    let scene = dies_verifying("console.bulk_verifying", "exit 0").await;
    scene.holds("state = 'failed'", 2).await;
    assert_eq!(
        (scene.action_count("bulk_verify").await, scene.action_count("resolve").await),
        (1, 0)
    );
    verified(&scene, "exit 1").await;
    scene.ends(scene.successors(), "console.bulk_verifying", DONE, [1, 1]).await;
    assert_eq!(
        (scene.action_count("requeue").await, scene.action_count("bulk_verify").await),
        (2, 2)
    );
}

#[tokio::test]
async fn console_bulk_answered() {
    let scene = dies_verifying("console.bulk_answered", "exit 0").await;
    // What was not recorded was not said.
    scene.holds("state = 'failed'", 2).await;
    assert_eq!(count(&scene.platform, "sexton.bulk_items WHERE state = 'unasked'").await, 2);
    verified(&scene, "exit 1").await;
    scene.ends(scene.successors(), "console.bulk_answered", DONE, [1, 1]).await;
    assert_eq!((scene.action_count("requeue").await, scene.action_count("resolve").await), (2, 0));
}

#[tokio::test]
async fn console_bulk_judged() {
    let scene = dies_verifying("console.bulk_judged", "exit 0").await;
    // Both commands run at once, so the other's answer may be recorded too.
    let resolved = count(&scene.platform, "sexton.executions WHERE state = 'succeeded'").await;
    assert!((1..=2).contains(&resolved), "{resolved}");
    assert_eq!(scene.action_count("resolve").await, resolved);
    verified(&scene, "exit 0").await;
    assert_eq!(scene.action_count("resolve").await, 2);
    scene.ends(scene.successors(), "console.bulk_judged", DONE, [0, 0]).await;
    assert_eq!(scene.action_count("requeue").await, 0);
}

#[tokio::test]
async fn a_bulk_that_cancels_survives_the_death_of_its_command_and_of_its_scheduler() {
    let scene = Scene::plain().await;
    scene.trigger().await;
    let command = ["executions", "cancel", "--all", "--yes"];
    scene.console_dies("console.bulk_created", &command).await;
    scene.holds("state = 'pending'", 1).await;
    scene.scheduler_dies("scheduler.bulk_prepared").await;
    assert_eq!(count(&scene.platform, "sexton.bulk_items WHERE state = 'waiting'").await, 1);
    scene.scheduler_dies("scheduler.bulk_executed").await;
    scene.holds("state = 'cancelled' AND started_at IS NULL", 1).await;
    assert_eq!((scene.action_count("cancel").await, scene.action_count("bulk").await), (1, 1));
    let _scheduler = scene.successors();
    until(&scene.platform, "sexton.bulks WHERE state = 'done'", 1).await;
    assert_eq!(scene.action_count("cancel").await, 1);
}

#[tokio::test]
async fn console_bulk_stopped() {
    let scene = with_bulk().await;
    let command = ["bulks", "stop", "1", "--reason", "wrong ones"];
    scene.console_dies("console.bulk_stopped", &command).await;
    assert_eq!(count(&scene.platform, "sexton.bulks WHERE state = 'stopped'").await, 1);
    assert_eq!(scene.command(&command).await.status.code(), Some(4), "it is stopped already");
    let parked = "state = 'failed' AND ticket_published_at IS NOT NULL";
    scene.ends(scene.successors(), "console.bulk_stopped", parked, [0, 0]).await;
    assert_eq!(
        (scene.action_count("requeue").await, scene.action_count("bulk_stop").await),
        (0, 1)
    );
}

#[tokio::test]
async fn console_bulk_resumed() {
    let scene = with_bulk().await;
    assert!(scene.command(&["bulks", "stop", "1"]).await.status.success());
    let command = ["bulks", "resume", "1"];
    scene.console_dies("console.bulk_resumed", &command).await;
    assert_eq!(scene.command(&command).await.status.code(), Some(4), "it goes on already");
    scene.ends(scene.successors(), "console.bulk_resumed", DONE, [1, 1]).await;
    assert_eq!(scene.action_count("requeue").await, 2);
}

#[tokio::test]
async fn scheduler_bulk_prepared() {
    let scene = with_bulk().await;
    scene.scheduler_dies("scheduler.bulk_prepared").await;
    scene.holds("state = 'failed'", 2).await;
    assert_eq!(
        count(&scene.platform, "sexton.bulks WHERE state = 'running' AND selected = 2").await,
        1
    );
    scene.ends(scene.successors(), "scheduler.bulk_prepared", DONE, [1, 1]).await;
    assert_eq!(
        (count(&scene.platform, "sexton.bulk_items").await, scene.action_count("requeue").await),
        (2, 2)
    );
}

#[tokio::test]
async fn scheduler_bulk_executed() {
    let scene = with_bulk().await;
    scene.scheduler_dies("scheduler.bulk_executed").await;
    scene.holds("state = 'pending' AND ticket_published_at IS NULL", 2).await;
    assert_eq!((scene.action_count("requeue").await, tickets(&scene).await), (2, 0));
    assert_eq!(count(&scene.platform, "sexton.bulks WHERE done = 2").await, 1);
    scene.ends(scene.successors(), "scheduler.bulk_executed", DONE, [1, 1]).await;
    assert_eq!(scene.action_count("requeue").await, 2);
}

#[tokio::test]
async fn scheduler_bulk_published() {
    let scene = with_bulk().await;
    scene.scheduler_dies("scheduler.bulk_published").await;
    scene.holds("state = 'pending' AND ticket_published_at IS NULL", 2).await;
    scene.waits(scene.wire.main(), 2).await;
    scene.ends(scene.successors(), "scheduler.bulk_published", DONE, [1, 1]).await;
    assert_eq!(scene.action_count("requeue").await, 2);
}

async fn tickets(scene: &Scene) -> u32 {
    scene.wire.depth(scene.wire.main()).await
}
