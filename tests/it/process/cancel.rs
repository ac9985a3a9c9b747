//! Cancels, against tasks that run, that are deaf, that wait, and that end at the same time.
//!
//! Where a cancel must arrive by its notification, the lease is an hour long: the first renewal, which
//! would bring it too, is a quarter of an hour away. Where it must arrive without one, the test
//! writes the row, without a notification.

use sexton_tests::platform::{CommandOutput, Platform};

use super::ledger::Ledger;
use super::{FINAL_TIMEOUT, by_hand, count, until};

const LONG_LEASE: &str = "lease = \"1h\"";

struct Scene {
    platform: Platform,
    ledger: Ledger,
}

impl Scene {
    /// A job `a.b` of this task, and its scheduler; no worker yet.
    async fn new(job: &str, task: &str) -> Self {
        let mut platform = Platform::new().await.unwrap();
        let ledger = Ledger::new(&platform, task);
        platform.catalogue(&format!("{}grace = \"1s\"\n", ledger.catalogue()));
        platform.apply(&by_hand("a.b", "work", job)).await.unwrap();
        let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
        Self { platform, ledger }
    }

    fn worker(&self, name: &str, slots: &str) {
        let _worker = self.platform.start_worker(name, &[("WORKER_SLOTS", slots)]).unwrap();
    }

    async fn trigger(&self) -> String {
        let answer = self.platform.sexton_json(&["jobs", "trigger", "a.b"]).await;
        answer["id"].as_str().unwrap().to_owned()
    }

    async fn cancel(&self, id: &str) -> CommandOutput {
        self.platform.sexton(&["executions", "cancel", id]).await
    }

    /// Waits for the first of `count` begins that is not among the `known`; the task's process id.
    async fn begun(&self, number: usize) -> String {
        let line = self
            .platform
            .eventually("the task has begun", FINAL_TIMEOUT, async || {
                self.ledger.lines("begin").get(number).cloned()
            })
            .await;
        line.rsplit(' ').next().unwrap().to_owned()
    }

    /// Requests a cancel in the row, without a notification.
    async fn cancel_in_silence(&self) {
        sqlx::query("UPDATE sexton.executions SET cancel_requested = true WHERE state = 'running'")
            .execute(self.platform.store().pool())
            .await
            .unwrap();
    }

    async fn cancelled(&self) {
        let ended =
            "sexton.executions WHERE state = 'cancelled' AND attempt = 1 AND retries_used = 0";
        until(&self.platform, ended, 1).await;
        assert_eq!(
            count(&self.platform, "sexton.all_attempts WHERE outcome = 'cancelled'").await,
            1
        );
    }

    /// Waits until each ticket of the platform has come and gone: whatever could still run has run.
    async fn no_ticket_is_left(&self) {
        let empty = async || {
            let pool = &self.platform.sexton_json(&["status"]).await["pools"][0];
            let left = ["queue_ready", "retry_queues_ready"].map(|name| pool[name].as_u64());
            (left == [Some(0), Some(0)]).then_some(())
        };
        self.platform.eventually("the queues are empty", FINAL_TIMEOUT, empty).await;
        // The last one may be in a worker's hand: whatever comes after it is answered after it.
        let next = self.trigger().await;
        let ended = format!("sexton.executions WHERE id = '{next}' AND state = 'succeeded'");
        until(&self.platform, &ended, 1).await;
    }
}

fn lives(pid: &str) -> bool {
    std::path::Path::new("/proc").join(pid).exists()
}

#[tokio::test]
async fn a_cancel_reaches_a_task_on_either_of_two_workers_without_waiting_for_a_renewal() {
    let task = "trap 'echo term >> term; exit 0' TERM; while :; do sleep 0.1; done";
    let scene = Scene::new(LONG_LEASE, task).await;
    scene.worker("w1", "1");
    scene.worker("w2", "1");
    let (one, two) = (scene.trigger().await, scene.trigger().await);
    let pids = [scene.begun(0).await, scene.begun(1).await];
    let done = scene.cancel(&one).await;
    assert!(done.status.success(), "{done}");
    scene.cancelled().await;
    // The other goes on, and is then found as well.
    assert_eq!(pids.iter().filter(|pid| lives(pid)).count(), 1);
    let other = format!("sexton.executions WHERE id = '{two}' AND state = 'running'");
    assert_eq!(count(&scene.platform, &other).await, 1);
    let done = scene.cancel(&two).await;
    assert!(done.status.success(), "{done}");
    until(&scene.platform, "sexton.executions WHERE state = 'cancelled' AND attempt = 1", 2).await;
    // Each task received SIGTERM, and nobody killed it.
    let signals = std::fs::read_to_string(scene.platform.folder().join("term")).unwrap();
    assert_eq!(signals, "term\nterm\n");
    assert!(!pids.iter().any(|pid| lives(pid)));
}

#[tokio::test]
async fn a_task_that_ignores_its_cancel_is_killed_after_the_grace() {
    let task = "trap '' TERM; echo $$ > deaf; while :; do sleep 0.1; done";
    let scene = Scene::new(LONG_LEASE, task).await;
    scene.worker("w1", "1");
    let id = scene.trigger().await;
    let pid = scene.begun(0).await;
    let deaf = async || scene.platform.folder().join("deaf").exists().then_some(());
    scene.platform.eventually("the task is deaf", FINAL_TIMEOUT, deaf).await;
    let done = scene.cancel(&id).await;
    assert!(done.status.success(), "{done}");
    scene.cancelled().await;
    assert!(!lives(&pid));
    assert_eq!(count(&scene.platform, "sexton.all_attempts WHERE signal = 9").await, 1);
    // A second cancel is refused: the execution has ended.
    assert_eq!(scene.cancel(&id).await.status.code(), Some(4));
}

#[tokio::test]
async fn a_cancel_without_a_notification_is_noticed_by_the_next_renewal() {
    let scene = Scene::new("lease = \"4s\"", "sleep 3000").await;
    scene.worker("w1", "1");
    scene.trigger().await;
    scene.begun(0).await;
    scene.cancel_in_silence().await;
    scene.cancelled().await;
}

#[tokio::test]
async fn a_cancel_notified_during_a_disconnect_is_noticed_after_the_reconnect() {
    let scene = Scene::new(LONG_LEASE, "sleep 3000").await;
    scene.worker("w1", "1");
    scene.trigger().await;
    scene.begun(0).await;
    scene.cancel_in_silence().await;
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'sexton worker w1'
          AND query LIKE 'LISTEN%'";
    let ended: i64 =
        sqlx::query_scalar(end).fetch_one(scene.platform.store().pool()).await.unwrap();
    assert_eq!(ended, 1);
    scene.cancelled().await;
}

#[tokio::test]
async fn a_retrying_execution_is_cancelled_at_once_and_never_runs_again() {
    let task = "[ $SEXTON_ATTEMPT = 1 ] && ! test -e well && exit 1";
    let scene = Scene::new("retry = { delay = \"4s\", jitter = 0.0 }", task).await;
    scene.worker("w1", "1");
    let id = scene.trigger().await;
    let waits = "sexton.executions WHERE state = 'retrying' AND ticket_published_at IS NOT NULL";
    until(&scene.platform, waits, 1).await;
    let done = scene.cancel(&id).await;
    assert!(done.status.success(), "{done}");
    // In place: nobody has to end it.
    assert_eq!(count(&scene.platform, "sexton.executions WHERE state = 'cancelled'").await, 1);
    // Its ticket comes all the same, and opens nothing.
    std::fs::write(scene.platform.folder().join("well"), "").unwrap();
    scene.no_ticket_is_left().await;
    assert_eq!(count(&scene.platform, "sexton.executions WHERE state = 'cancelled'").await, 1);
    assert_eq!(scene.ledger.lines("begin").len(), 2, "the cancelled one once, and the next");
}

#[tokio::test]
async fn a_cancel_and_an_end_at_the_same_time_agree_on_one_of_them() {
    const ALL: usize = 12;
    // Over by itself at about the time at which the cancel comes.
    let scene = Scene::new(LONG_LEASE, "sleep 0.$(( $$ % 4 ))").await;
    scene.worker("w1", "4");
    let mut cancelled = Vec::new();
    for _ in 0..ALL {
        let id = scene.trigger().await;
        let done = scene.cancel(&id).await;
        let at_once = done.status.success() && done.stdout.contains("is cancelled");
        cancelled.push((id, at_once, done));
    }
    let over = "sexton.executions WHERE state IN ('succeeded', 'cancelled') AND attempt = 1";
    until(&scene.platform, over, ALL as i64).await;
    scene.no_ticket_is_left().await;
    let runs = scene.ledger.runs();
    for (id, at_once, done) in &cancelled {
        let row = scene.platform.sexton_json(&["executions", "show", id]).await;
        let key = row["idempotency_key"].as_str().unwrap();
        let key: String =
            key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let runs = runs.get(&key).copied().unwrap_or_default();
        let attempts = row["attempts"].as_array().unwrap();
        assert!(runs.begun <= 1, "{done} {row}");
        assert_eq!(attempts.len(), usize::from(!at_once), "{done} {row}");
        if *at_once {
            assert_eq!((row["state"].as_str(), runs.begun), (Some("cancelled"), 0), "{row}");
        } else {
            assert_eq!(attempts[0]["outcome"], row["state"], "{done} {row}");
        }
    }
    scene.ledger.no_overlap();
}
