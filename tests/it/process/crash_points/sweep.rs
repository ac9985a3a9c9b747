//! The scheduler's sweep, with parked messages: each judgement.

use lapin::BasicProperties;
use lapin::options::{
    BasicGetOptions, BasicPublishOptions, BasicRejectOptions, QueueDeleteOptions, QueuePurgeOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use sexton_model::id::JobId;
use sexton_model::state::State;
use sexton_service::clock;
use sexton_tests::factory::NewExecution;

use super::{FINAL_TIMEOUT, Scene, died};

const PARKED: &str = "state = 'failed' AND ticket_published_at IS NOT NULL";
const DONE: &str = "state = 'succeeded'";

#[tokio::test]
async fn scheduler_sweep_taken() {
    let scene = Scene::plain().await;
    let ids = scene.parked(2).await;
    scene.requeue(&ids[..1]).await;
    scene.scheduler_dies("scheduler.sweep_taken").await;
    scene.holds(PARKED, 1).await;
    scene.waits(scene.wire.failed(), 2).await;
    let successors = scene.successors();
    scene.waits(scene.wire.failed(), 1).await;
    scene.requeue(&ids[1..]).await;
    scene.ends(successors, "scheduler.sweep_taken", DONE, [1, 1]).await;
}

#[tokio::test]
async fn scheduler_sweep_copied() {
    let scene = Scene::plain().await;
    let ids = scene.parked(1).await;
    scene.put_a_copy().await;
    scene.scheduler_dies("scheduler.sweep_copied").await;
    scene.holds(PARKED, 1).await;
    // The original, the copy by hand, and the one that the sweep put at the tail.
    scene.waits(scene.wire.failed(), 3).await;
    scene.is_put_right_and_runs(&ids, "scheduler.sweep_copied").await;
}

#[tokio::test]
async fn scheduler_sweep_kept() {
    let scene = Scene::plain().await;
    let ids = scene.parked(1).await;
    scene.put_a_copy().await;
    scene.scheduler_dies("scheduler.sweep_kept").await;
    scene.holds(PARKED, 1).await;
    scene.is_put_right_and_runs(&ids, "scheduler.sweep_kept").await;
}

#[tokio::test]
async fn scheduler_sweep_removed() {
    let scene = Scene::plain().await;
    let ids = scene.parked(1).await;
    scene.put_a_copy().await;
    scene.scheduler_dies("scheduler.sweep_removed").await;
    scene.holds(PARKED, 1).await;
    scene.is_put_right_and_runs(&ids, "scheduler.sweep_removed").await;
}

#[tokio::test]
async fn scheduler_sweep_failed() {
    let scene = Scene::plain().await;
    scene.ticket().await;
    scene.hand_out_to_the_limit().await;
    scene.scheduler_dies("scheduler.sweep_failed").await;
    let failed = "state = 'failed' AND attempt = 2 AND error_class = 'delivery_limit'";
    scene.holds(&format!("{failed} AND ticket_published_at IS NULL"), 1).await;
    // What the broker had parked, and what is an older ticket now.
    scene.waits(scene.wire.failed(), 1).await;
    let ids = scene.ids().await;
    scene.is_put_right_and_runs(&ids, "scheduler.sweep_failed").await;
}

#[tokio::test]
async fn scheduler_sweep_marked_unpublished() {
    let scene = Scene::plain().await;
    let ids = scene.parked(1).await;
    let purge = QueuePurgeOptions::default();
    scene.wire.channel().queue_purge(scene.wire.failed().into(), purge).await.unwrap();
    scene.scheduler_dies("scheduler.sweep_marked_unpublished").await;
    scene.holds("state = 'failed' AND ticket_published_at IS NULL", 1).await;
    scene.is_put_right_and_runs(&ids, "scheduler.sweep_marked_unpublished").await;
}

#[tokio::test]
async fn scheduler_sweep_declared() {
    let scene = Scene::plain().await;
    let ids = scene.parked(1).await;
    let env = [("FAULT_POINT", "scheduler.sweep_declared")];
    let mut doomed = scene.platform.start_scheduler("s1", &env).unwrap();
    doomed.ready().await;
    // Not before: it declares every queue when it connects. It looks again within half a minute.
    let gone = QueueDeleteOptions::default();
    scene.wire.channel().queue_delete(scene.wire.failed().into(), gone).await.unwrap();
    died(&mut doomed, "scheduler.sweep_declared").await;
    scene.holds(PARKED, 1).await;
    assert_eq!(scene.wire.depth(scene.wire.failed()).await, 0, "it is there again, and empty");
    scene.is_put_right_and_runs(&ids, "scheduler.sweep_declared").await;
}

impl Scene {
    /// Failed executions whose messages are in the failed queue; nobody is at work.
    pub(super) async fn parked(&self, wanted: usize) -> Vec<String> {
        let pool = self.platform.store().pool();
        let job = sqlx::query_scalar("SELECT id FROM sexton.jobs").fetch_one(pool).await.unwrap();
        let at = clock::now() - std::time::Duration::from_mins(1);
        for _ in 0..wanted {
            NewExecution::new(JobId::new(job), State::Failed, at).insert(pool).await.unwrap();
        }
        self.published("state = 'failed'", wanted as i64).await;
        self.waits(self.wire.failed(), wanted as u32).await;
        self.ids().await
    }

    /// Puts a second copy of the one message into the failed queue, as a tool would.
    async fn put_a_copy(&self) {
        let found = self.wire.look(self.wire.failed()).await.pop().unwrap();
        let mut headers = FieldTable::default();
        headers.insert("sexton-attempt".into(), AMQPValue::LongLongInt(found.attempt.unwrap()));
        let properties = BasicProperties::default()
            .with_delivery_mode(2)
            .with_headers(headers)
            .with_message_id(found.id.unwrap().as_str().into());
        let (to, options) = (self.wire.failed().into(), BasicPublishOptions::default());
        let channel = self.wire.channel();
        let sent = channel.basic_publish("".into(), to, options, &found.body, properties).await;
        sent.unwrap().await.unwrap();
        self.waits(self.wire.failed(), 2).await;
    }

    /// Takes the ticket as a worker that dies of it each time, until the broker parks it.
    async fn hand_out_to_the_limit(&self) {
        let hand_out = async || {
            let options = BasicGetOptions::default();
            let taken = self.wire.channel().basic_get(self.wire.main().into(), options);
            if let Some(taken) = taken.await.unwrap() {
                taken.delivery.acker.reject(BasicRejectOptions { requeue: true }).await.unwrap();
            }
        };
        let end = tokio::time::Instant::now() + FINAL_TIMEOUT;
        while self.wire.depth(self.wire.failed()).await == 0 {
            assert!(tokio::time::Instant::now() < end, "the broker parks it at its limit");
            hand_out().await;
        }
    }

    async fn requeue(&self, ids: &[String]) {
        for id in ids {
            let done = self.platform.sexton(&["failed", "requeue", id]).await;
            assert!(done.status.success(), "{done}");
        }
    }

    /// The next sweep leaves each failed row one message, and a requeue runs each once.
    async fn is_put_right_and_runs(&self, ids: &[String], point: &str) {
        self.is_swept().await;
        self.holds(PARKED, ids.len() as i64).await;
        self.requeue(ids).await;
        self.ends(self.successors(), point, DONE, [1, 1]).await;
    }
}
