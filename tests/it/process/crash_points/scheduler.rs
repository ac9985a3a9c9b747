//! The scheduler, with unpublished, lost and abandoned tickets: relay, rescuer, reconciler.

use lapin::options::{QueueDeleteOptions, QueuePurgeOptions};
use sexton_broker::names;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_store::parked_messages::fail_unopened;

use super::{FINAL_TIMEOUT, Scene, count, died};

const UNPUBLISHED: &str = "state = 'pending' AND attempt = 1 AND ticket_published_at IS NULL";
const PUBLISHED: &str = "state = 'pending' AND attempt = 1 AND ticket_published_at IS NOT NULL";
const DONE_AT_FIRST: &str = "state = 'succeeded' AND attempt = 1";

const UNPUBLISH: &str =
    "UPDATE sexton.executions SET ticket_published_at = NULL, rev = rev + 1, relay_after = now()
     WHERE ticket_published_at IS NOT NULL";

/// For the rows: the reconciler is patient for five.
const TEN_MINUTES_PASS: &str = "UPDATE sexton.executions
     SET next_attempt_at = next_attempt_at - interval '10 minutes',
         ticket_published_at = ticket_published_at - interval '10 minutes'";

#[tokio::test]
async fn scheduler_relay_taken() {
    let scene = Scene::plain().await;
    scene.trigger().await;
    scene.scheduler_dies("scheduler.relay_taken").await;
    scene.holds(&format!("{UNPUBLISHED} AND relay_after > now() + interval '10 seconds'"), 1).await;
    assert_eq!(scene.wire.depth(scene.wire.main()).await, 0, "it was not published");
    scene.time_passes().await;
    scene.ends(scene.successors(), "scheduler.relay_taken", DONE_AT_FIRST, [1, 1]).await;
}

#[tokio::test]
async fn scheduler_relayed() {
    let scene = Scene::plain().await;
    scene.trigger().await;
    scene.scheduler_dies("scheduler.relayed").await;
    scene.holds(UNPUBLISHED, 1).await;
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
    scene.delete(scene.wire.main()).await;
    scene.trigger().await;
    let published = format!("sexton.executions WHERE {PUBLISHED}");
    // Each round but the first needs another connection.
    for _ in 0..10 {
        let refused_or_published = async || {
            let is_published = count(&scene.platform, &published).await > 0;
            (is_published || doomed.ended().is_some()).then_some(())
        };
        scene.platform.eventually("a refusal", FINAL_TIMEOUT, refused_or_published).await;
        if doomed.ended().is_some() {
            break;
        }
        // A link that connects again, as on a busy machine, declares the queue, and the ticket gets through.
        scene.delete(scene.wire.main()).await;
        scene.sql(UNPUBLISH).await;
    }
    died(&mut doomed, "scheduler.relay_marked").await;
    scene.holds(UNPUBLISHED, 1).await;
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
async fn scheduler_marked_unpublished() {
    let scene = Scene::plain().await;
    scene.ticket().await;
    let purge = QueuePurgeOptions::default();
    scene.wire.channel().queue_purge(scene.wire.main().into(), purge).await.unwrap();
    scene.sql(TEN_MINUTES_PASS).await;
    scene.scheduler_dies("scheduler.marked_unpublished").await;
    scene.holds(&format!("{UNPUBLISHED} AND reconcile_count = 1"), 1).await;
    scene.ends(scene.successors(), "scheduler.marked_unpublished", DONE_AT_FIRST, [1, 1]).await;
}

#[tokio::test]
async fn scheduler_failures_aggregated() {
    let scene = Scene::plain().await;
    scene.parked_by_hand().await;
    scene.scheduler_dies("scheduler.failures_aggregated").await;
    let unnamed_groups = "sexton.failure_groups WHERE pattern IS NULL";
    assert_eq!(count(&scene.platform, unnamed_groups).await, 1);
    assert_eq!(count(&scene.platform, "sexton.failure_changes").await, 0);
    let successors = scene.successors();
    let named = async || (count(&scene.platform, unnamed_groups).await == 0).then_some(());
    scene.platform.eventually("the group has its pattern", FINAL_TIMEOUT, named).await;
    scene.ends(successors, "scheduler.failures_aggregated", "state = 'failed'", [0, 0]).await;
}

impl Scene {
    /// An execution that has failed without an attempt.
    async fn parked_by_hand(&self) {
        self.trigger().await;
        let id: uuid::Uuid = sqlx::query_scalar("SELECT id FROM sexton.executions")
            .fetch_one(self.platform.store().pool())
            .await
            .unwrap();
        let (id, first) = (ExecutionId::new(id), AttemptNumber::FIRST);
        let (class, reason) = ("unopenable", "no worker could open its ticket");
        let failing = fail_unopened(self.platform.store(), id, first, class, reason, None);
        assert!(failing.await.unwrap());
    }
}
