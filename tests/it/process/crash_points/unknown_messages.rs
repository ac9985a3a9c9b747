//! Messages that no row knows, and the doctor: dead between a mark and what it asks for.

use lapin::BasicProperties;
use lapin::options::{BasicPublishOptions, QueueDeleteOptions};
use sexton_broker::PoolName;
use sexton_broker::names::retry_queue;

use super::{FINAL_TIMEOUT, Scene, count, listed};

const THERE: &str = "sexton.unknown_messages WHERE gone_at IS NULL AND discard_at IS NULL";
const MARKED: &str = "sexton.unknown_messages WHERE gone_at IS NULL AND discard_at IS NOT NULL";
const GONE: &str = "sexton.unknown_messages WHERE gone_at IS NOT NULL";
const NOTHING_DONE: Option<i32> = Some(4);

#[tokio::test]
async fn scheduler_sweep_recorded() {
    let scene = Scene::plain().await;
    scene.rubbish_is_seen().await;
    let id = scene.raw().await;
    scene.discard(&[&id]).await;
    scene.scheduler_dies("scheduler.sweep_recorded").await;
    assert_eq!(count(&scene.platform, MARKED).await, 1);
    scene.waits(scene.wire.failed(), 1).await;
    scene.is_swept_of_rubbish().await;
    assert_eq!(listed("scheduler.sweep_recorded").reruns, super::Reruns::Never);
}

#[tokio::test]
async fn scheduler_sweep_restored() {
    let scene = Scene::plain().await;
    scene.rubbish_is_seen().await;
    let id = scene.raw().await;
    scene.discard(&[&id]).await;
    scene.is_swept_of_rubbish().await;
    assert!(scene.command(&["unknown", "restore", &id]).await.status.success());
    scene.scheduler_dies("scheduler.sweep_restored").await;
    scene.waits(scene.wire.failed(), 1).await;
    assert_eq!(count(&scene.platform, GONE).await, 1, "its row does not say so yet");
    scene.sweeper_until("sexton.unknown_messages WHERE gone_at IS NULL AND copies = 2", 1).await;
    scene.waits(scene.wire.failed(), 2).await;
    assert_eq!(listed("scheduler.sweep_restored").reruns, super::Reruns::Never);
}

#[tokio::test]
async fn console_unknown_discarded() {
    let scene = Scene::plain().await;
    scene.declared().await;
    scene.put(b"one").await;
    scene.put(b"two").await;
    scene.sweeper_until(THERE, 2).await;
    let ids = scene.raws().await;
    let command = ["unknown", "discard", &ids[0], &ids[1], "--reason", "rubbish", "--yes"];
    scene.console_dies("console.unknown_discarded", &command).await;
    assert_eq!(count(&scene.platform, MARKED).await, 1);
    let again = scene.command(&command).await;
    assert_eq!(again.status.code(), NOTHING_DONE, "one was discarded before: {again}");
    scene.is_swept_of_rubbish().await;
    assert_eq!(scene.action_count("discard_raw").await, 2);
    assert_eq!(listed("console.unknown_discarded").reruns, super::Reruns::Never);
}

#[tokio::test]
async fn console_unknown_restored() {
    let scene = Scene::plain().await;
    scene.rubbish_is_seen().await;
    let id = scene.raw().await;
    scene.discard(&[&id]).await;
    scene.is_swept_of_rubbish().await;
    let command = ["unknown", "restore", &id];
    scene.console_dies("console.unknown_restored", &command).await;
    assert_eq!(
        count(&scene.platform, "sexton.unknown_messages WHERE restore_at IS NOT NULL").await,
        1
    );
    let again = scene.command(&command).await;
    assert_eq!(again.status.code(), NOTHING_DONE, "it was taken back before: {again}");
    scene.sweeper_until(THERE, 1).await;
    scene.waits(scene.wire.failed(), 1).await;
    assert_eq!(listed("console.unknown_restored").reruns, super::Reruns::Never);
}

#[tokio::test]
async fn console_fix_recorded() {
    let scene = Scene::plain().await;
    let gone = retry_queue(scene.platform.namespace(), &PoolName::default_pool(), 5_000);
    let delete = scene.wire.channel().queue_delete((*gone).into(), QueueDeleteOptions::default());
    delete.await.unwrap();
    scene.console_dies("console.fix_recorded", &["doctor", "--fix"]).await;
    assert_eq!(scene.action_count("doctor_fix").await, 1);
    let again = scene.platform.sexton(&["--json", "doctor", "--fix"]).await;
    assert!(again.stdout.contains("declared the topology"), "{again}");
    assert_eq!(scene.action_count("doctor_fix").await, 2);
    assert_eq!(scene.wire.depth(&gone).await, 0);
    assert_eq!(listed("console.fix_recorded").reruns, super::Reruns::Never);
}

impl Scene {
    /// Puts a message into the failed queue that nobody can read.
    async fn put(&self, body: &[u8]) {
        let properties = BasicProperties::default().with_delivery_mode(2);
        let (to, options) = (self.wire.failed().into(), BasicPublishOptions::default());
        let sent = self.wire.channel().basic_publish("".into(), to, options, body, properties);
        sent.await.unwrap().await.unwrap();
    }

    /// The queues are there, and nobody is at work.
    async fn declared(&self) {
        let mut first = self.platform.start_scheduler("s0", &[]).unwrap();
        first.ready().await;
        first.terminate();
        assert!(first.exit(FINAL_TIMEOUT).await.success(), "{}", first.log());
    }

    async fn rubbish_is_seen(&self) {
        self.declared().await;
        self.put(b"rubbish").await;
        self.sweeper_until(THERE, 1).await;
        self.waits(self.wire.failed(), 1).await;
    }

    /// Nobody is at work, before and after; meanwhile a scheduler sweeps until so many rows are like
    /// this.
    async fn sweeper_until(&self, what: &str, wanted: i64) {
        let mut sweeper = self.platform.start_scheduler("sweeper", &[]).unwrap();
        super::until(&self.platform, what, wanted).await;
        sweeper.terminate();
        assert!(sweeper.exit(FINAL_TIMEOUT).await.success(), "{}", sweeper.log());
    }

    /// A sweep carries the marks out, and the failed queue is empty.
    async fn is_swept_of_rubbish(&self) {
        let marked = count(&self.platform, MARKED).await;
        self.sweeper_until(GONE, marked).await;
        self.waits(self.wire.failed(), 0).await;
    }

    async fn discard(&self, ids: &[&str]) {
        let command = ["unknown", "discard", "--reason", "rubbish", "--yes"];
        let done = self.command(&[&command[..], ids].concat()).await;
        assert!(done.status.success(), "{done}");
    }

    async fn raws(&self) -> Vec<String> {
        sqlx::query_scalar("SELECT encode(digest, 'hex') FROM sexton.unknown_messages ORDER BY 1")
            .fetch_all(self.platform.store().pool())
            .await
            .unwrap()
    }

    async fn raw(&self) -> String {
        self.raws().await.remove(0)
    }
}
