//! Queues that take no messages: failed queues and delay queues, under a policy of RabbitMQ.
//!
//! A slot must not wait for them. So there are many more messages that want to go there than the worker has slots, and
//! the tests assert that other tasks run all the same, that all messages are there afterwards, and that the platform
//! reports it.

use std::collections::BTreeSet;

use sexton_servers::shared;
use sexton_tests::platform::{Platform, Program};
use sexton_tests::virtual_host::VirtualHost;
use uuid::Uuid;

use super::FINAL_TIMEOUT;
use crate::bad_input::probe::{assert_sound, lines_with, readiness};
use crate::bad_input::properties::{HEADERS, flat};
use crate::bad_input::raw;
use crate::bad_input::wire::{Message, Wire};
use crate::process::{count, until};

const CATALOGUE: &str = "[tasks.work]\ncommand = [\"/bin/true\"]\n";
const OTHERS: &str =
    "[tasks.work]\ncommand = [\"/bin/true\"]\n[tasks.rare]\ncommand = [\"/bin/true\"]\n";
const JOBS: &str = r#"
[[job]]
name = "refusing.work"
task = "work"
overlap = "allow"
[[job]]
name = "refusing.rare"
task = "rare"
overlap = "allow"
"#;
/// For each of the worker's two slots many.
const MESSAGES: usize = 24;
const TICKETS: usize = 12;
/// What a quorum queue takes until it refuses: its limit is soft.
const FILLED: u32 = 4;
const ENV: [(&str, &str); 3] =
    [("WORKER_SLOTS", "2"), ("SET_ASIDE_MS", "2000"), ("LEASE_MS", "5000")];
const FLAWED: &[u8] = br#"{"type":"work"}"#;

struct Scene {
    host: VirtualHost,
    platform: Platform,
    wire: Wire,
    scheduler: Program,
    worker: Program,
}

impl Scene {
    async fn new() -> Self {
        let host = VirtualHost::create().await.unwrap();
        let database = shared().await.unwrap().database_url.clone();
        let mut platform = Platform::on(&database, host.url()).await.unwrap();
        platform.catalogue(CATALOGUE);
        platform.apply(JOBS).await.unwrap();
        let mut scheduler = platform.start_scheduler("s1", &[("SWEEP_POLL_MS", "500")]).unwrap();
        let mut worker = platform.start_worker("w1", &ENV).unwrap();
        scheduler.ready().await;
        worker.ready().await;
        let wire = Wire::connect(&platform).await;
        Self { host, platform, wire, scheduler, worker }
    }

    /// Lets the queues whose names match take nothing.
    async fn refuse(&self, pattern: &str) {
        let pattern = format!("^{}.*({pattern})", self.platform.namespace());
        self.host.set_policy("full", &pattern, r#"{"max-length":0}"#, 0).await.unwrap();
    }

    async fn relent(&self) {
        self.host.clear_policy("full").await.unwrap();
    }

    /// Messages that cannot be read; of the last one only the properties.
    async fn send_unreadable(&self) -> BTreeSet<Vec<u8>> {
        let bodies = (1..MESSAGES).map(|number| format!("\u{1}not JSON {number}").into_bytes());
        let mut sent: BTreeSet<Vec<u8>> = bodies.collect();
        let messages: Vec<Message> = sent.iter().map(|body| Message::new(body.clone())).collect();
        self.wire.send(&messages).await;
        let (url, queue) = (self.platform.amqp_url().to_owned(), self.wire.main().to_owned());
        let flawed = move || raw::publish(&url, &queue, HEADERS, &flat(17 * 1024), FLAWED);
        tokio::task::spawn_blocking(flawed).await.unwrap();
        sent.insert(FLAWED.to_vec());
        sent
    }

    async fn trigger(&self, job: &str) -> Uuid {
        let answer = self.platform.sexton_json(&["jobs", "trigger", job]).await;
        answer["id"].as_str().unwrap().parse().unwrap()
    }

    /// Tasks that nothing is wrong with run, one after the other.
    async fn others_run(&self) {
        for _ in 0..3 {
            let id = self.trigger("refusing.work").await;
            until(
                &self.platform,
                &format!("sexton.executions WHERE id = '{id}' AND state = 'succeeded'"),
                1,
            )
            .await;
        }
    }

    /// Waits until `/readyz` warns of a queue whose name ends so, and the doctor names it.
    async fn people_learn_of(&self, ending: &str) {
        let warned = async || {
            let report = readiness(&self.worker).await?;
            assert_eq!(report["ready"], true, "{report}");
            let warnings = report["warnings"].as_array()?;
            let name = |one: &serde_json::Value| Some(one["name"].as_str()?.to_owned());
            warnings.iter().filter_map(name).find(|name| name.ends_with(ending))
        };
        let warning = self.platform.eventually("/readyz warns", FINAL_TIMEOUT, warned).await;
        let queue = warning.strip_prefix("queue ").unwrap();
        let found = async || {
            let output = self.platform.sexton(&["doctor"]).await;
            (output.stdout.contains("messages_refused")
                && output.stdout.contains(&format!("by queue {queue}, ")))
            .then_some(())
        };
        self.platform.eventually("the doctor names it", FINAL_TIMEOUT, found).await;
        let logged = lines_with(&self.worker, "could not be put into it");
        assert!((1..=22).contains(&logged), "{logged} lines\n{}", self.worker.log());
        assert_eq!(self.worker.log().matches(&format!("queue {queue}: ")).count(), 1);
    }

    /// Every message is parked as it was sent, with the reason that it would have had at once.
    async fn all_are_parked(&mut self, sent: &BTreeSet<Vec<u8>>) {
        // Its sweep would hold them.
        self.scheduler.terminate();
        assert!(self.scheduler.exit(FINAL_TIMEOUT).await.success());
        self.relent().await;
        let parked = self.wire.parked(&self.platform, sent.len()).await;
        let bodies: BTreeSet<Vec<u8>> = parked.iter().map(|one| one.body.clone()).collect();
        assert_eq!((&bodies, parked.len()), (sent, sent.len()));
        for one in parked {
            let reason = one.reason.unwrap();
            let flawed = reason.contains("the message's properties cannot be read");
            assert!(flawed || reason.contains("the body is not JSON"), "{reason}");
            assert_eq!(flawed, one.body == FLAWED, "{reason}");
        }
        assert_eq!(count(&self.platform, "sexton.executions WHERE task_type = 'work'").await, 3);
    }

    async fn end(self) {
        let none = async || {
            let report = readiness(&self.worker).await?;
            report.get("warnings").is_none().then_some(())
        };
        self.platform.eventually("the warnings end", FINAL_TIMEOUT, none).await;
        assert_sound(&self.worker);
    }
}

#[tokio::test]
async fn messages_whose_failed_queue_refuses_keep_no_slot_and_are_parked_byte_for_byte_later() {
    let mut scene = Scene::new().await;
    scene.refuse("_failed$").await;
    let sent = scene.send_unreadable().await;
    scene.others_run().await;
    scene.people_learn_of("_failed").await;
    assert!(scene.wire.depth(scene.wire.failed()).await <= FILLED);
    scene.all_are_parked(&sent).await;
    scene.end().await;
}

#[tokio::test]
async fn messages_whose_delay_queues_refuse_too_wait_in_their_own_queue() {
    let mut scene = Scene::new().await;
    scene.refuse("_failed$|_retry").await;
    let sent = scene.send_unreadable().await;
    scene.others_run().await;
    scene.people_learn_of("_failed").await;
    assert!(scene.wire.depth(scene.wire.failed()).await <= FILLED);
    scene.all_are_parked(&sent).await;
    assert_sound(&scene.worker);
}

#[tokio::test]
async fn tickets_whose_delay_queue_refuses_wait_in_their_rows_and_run_once_when_they_are_due() {
    let mut scene = Scene::new().await;
    scene.refuse("_retry").await;
    for _ in 0..TICKETS {
        scene.trigger("refusing.rare").await;
    }
    let handed_back =
        "sexton.executions WHERE task_type = 'rare' AND state = 'pending' AND attempt = 1
        AND ticket_published_at IS NULL AND relay_after > now() + interval '5 seconds'";
    let most = TICKETS as i64 - i64::from(FILLED);
    let in_rows = async || (count(&scene.platform, handed_back).await >= most).then_some(());
    scene.platform.eventually("most tickets wait in their rows", FINAL_TIMEOUT, in_rows).await;
    scene.others_run().await;
    scene.people_learn_of("_retry.30000").await;
    // Its successor offers the type.
    scene.worker.terminate();
    assert!(scene.worker.exit(FINAL_TIMEOUT).await.success());
    scene.platform.catalogue(OTHERS);
    let mut other = scene.platform.start_worker("w2", &ENV).unwrap();
    other.ready().await;
    let succeeded =
        "sexton.executions WHERE task_type = 'rare' AND state = 'succeeded' AND attempt = 1";
    until(&scene.platform, succeeded, TICKETS as i64).await;
    let attempts = count(&scene.platform, "sexton.all_attempts").await;
    assert_eq!(attempts, TICKETS as i64 + 3);
    assert_sound(&other);
}
