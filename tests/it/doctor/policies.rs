//! Policies of RabbitMQ that apply to the namespace's queues: each is found and named, and loses nothing.
//!
//! Method: a catch-all policy on a virtual host of the test's own, under real programs. What it takes away is there
//! again by the rows, while it is in force or when it is gone.

use std::time::Duration;

use sexton_broker::names::{failed_queue, main_queue, retry_queue};
use sexton_broker::{Namespace, PoolName};
use sexton_model::delay_queues::DELAY_QUEUES_MS;
use sexton_operations::doctor::Code;
use sexton_servers::shared;
use sexton_tests::platform::{Platform, Program};
use sexton_tests::virtual_host::VirtualHost;
use tokio::time::Instant;

use super::{DoctorFixture, evidence};

/// Shorter than the five minutes after which a ticket counts as lost.
const SOON: Duration = Duration::from_secs(150);
/// Of a queue under [`DROP_HEAD`].
const MAX_LENGTH: u32 = 3;
const DROP_HEAD: &str = r#"{"max-length":3,"overflow":"drop-head"}"#;

const CATALOGUE: &str = r#"
[tasks.good]
command = ["/bin/true"]
[tasks.bad]
command = ["/bin/false"]
[tasks.second]
command = ["/bin/sh", "-c", "test \"$SEXTON_ATTEMPT\" = 2"]
"#;

const JOBS: &str = r#"
[[job]]
name = "a.good"
task = "good"
[[job]]
name = "a.bad"
task = "bad"
retry = { max_retries = 0 }
[[job]]
name = "a.second"
task = "second"
retry = { max_retries = 3, delay = "2s" }
"#;

struct Scene {
    host: VirtualHost,
    fixture: DoctorFixture,
    _scheduler: Program,
}

impl Scene {
    async fn new() -> Self {
        Self::sweeping_every("500").await
    }

    /// With a scheduler that looks at the failed queue so often, in milliseconds.
    async fn sweeping_every(poll_ms: &str) -> Self {
        let host = VirtualHost::create().await.unwrap();
        let database = shared().await.unwrap().database_url.clone();
        let mut platform = Platform::on(&database, host.url()).await.unwrap();
        platform.catalogue(CATALOGUE);
        platform.apply(JOBS).await.unwrap();
        let mut scheduler = platform.start_scheduler("s1", &[("SWEEP_POLL_MS", poll_ms)]).unwrap();
        scheduler.ready().await;
        Self { host, fixture: DoctorFixture { platform }, _scheduler: scheduler }
    }

    fn platform(&self) -> &Platform {
        &self.fixture.platform
    }

    fn namespace(&self) -> &Namespace {
        self.platform().namespace()
    }

    fn main(&self) -> String {
        main_queue(self.namespace(), &PoolName::default_pool())
    }

    async fn worker(&self) -> Program {
        let mut worker = self.platform().start_worker("w1", &[]).unwrap();
        worker.ready().await;
        worker
    }

    /// For every queue, as people set them.
    async fn policy(&self, definition: &str) {
        self.policy_of(".*", definition).await;
    }

    async fn policy_of(&self, pattern: &str, definition: &str) {
        self.host.set_policy("catch-all", pattern, definition, 0).await.unwrap();
    }

    /// As docs/operations/servers.md says: one of a higher priority for all of the namespace's queues.
    async fn outrank(&self) {
        let pattern = format!("^{}(\\.|_|$)", self.namespace());
        let definition = r#"{"overflow":"reject-publish"}"#;
        self.host.set_policy("sexton", &pattern, definition, 100).await.unwrap();
    }

    /// As docs/operations/servers.md says: the same policy for all queues but those of the namespace.
    async fn look_past(&self, definition: &str) {
        let pattern = format!("^(?!{}(\\.|_|$)).*", self.namespace());
        self.policy_of(&pattern, definition).await;
    }

    async fn trigger(&self, job: &str) {
        self.platform().sexton_json(&["jobs", "trigger", job]).await;
    }

    async fn in_state(&self, state: &str) -> i64 {
        let counting =
            sqlx::query_scalar("SELECT count(*) FROM sexton.executions WHERE state = $1");
        counting.bind(state).fetch_one(self.platform().store().pool()).await.unwrap()
    }

    async fn all(&self, count: i64, state: &str) {
        let what = format!("{count} have {state}");
        let reached = async || (self.in_state(state).await == count).then_some(());
        self.platform().eventually(&what, SOON, reached).await;
    }

    /// Waits until the doctor finds `code` with all of these words.
    async fn found(&self, code: Code, words: &[&str]) {
        let what = format!("{} with {words:?}", code.as_str());
        let look = async || self.has_found(code, words).await.then_some(());
        self.platform().eventually(&what, SOON, look).await;
        self.fixture.has(code).await;
    }

    /// Whether the doctor finds `code` with all of these words.
    async fn has_found(&self, code: Code, words: &[&str]) -> bool {
        let (_, answer) = self.fixture.run(&[], &[]).await;
        let findings = answer["findings"].as_array().unwrap();
        let found = findings.iter().find(|one| one["code"] == code.as_str());
        found.is_some_and(|found| words.iter().all(|word| evidence(found).contains(word)))
    }

    async fn unpublished(&self) -> i64 {
        let counting = "SELECT count(*) FROM sexton.executions WHERE ticket_published_at IS NULL";
        sqlx::query_scalar(counting).fetch_one(self.platform().store().pool()).await.unwrap()
    }

    async fn parked(&self) -> u32 {
        self.depth(&failed_queue(self.namespace())).await
    }

    async fn depth(&self, queue: &str) -> u32 {
        let (channel, _connection) = self.fixture.channel().await;
        let options = lapin::options::QueueDeclareOptions::durable().passive();
        let arguments = lapin::types::FieldTable::default();
        let declared = channel.queue_declare(queue.into(), options, arguments).await.unwrap();
        declared.message_count()
    }
}

#[tokio::test]
async fn doctor_finds_messages_expired() {
    let scene = Scene::new().await;
    scene.policy(r#"{"message-ttl":1000}"#).await;
    scene.trigger("a.good").await;
    let main = scene.main();
    scene.found(Code::MessagesExpired, &[&format!("expired in queue {main}, ")]).await;
    // Its ticket is there again long before it counts as lost.
    let began = Instant::now();
    let _worker = scene.worker().await;
    scene.all(1, "succeeded").await;
    println!("MEASURED an expired ticket was opened after {:?}", began.elapsed());
    scene.trigger("a.bad").await;
    scene.all(1, "failed").await;
    let gone = format!("were gone from queue {}, ", failed_queue(scene.namespace()));
    scene.found(Code::MessagesExpired, &[&gone]).await;
    scene.outrank().await;
    let stays = async || (scene.parked().await == 1).then_some(());
    scene.platform().eventually("its message is parked", SOON, stays).await;
    scene.trigger("a.second").await;
    scene.all(2, "succeeded").await;
}

#[tokio::test]
async fn doctor_finds_messages_refused() {
    let scene = Scene::new().await;
    let main = scene.main();
    // Of the main queue only, here and below: a failed queue that is still limited for a moment would drop what the
    // main queue drops into it. The test below is about that.
    scene.policy_of(&format!("^{main}$"), r#"{"max-length":3}"#).await;
    let refused = format!("were refused by queue {main}, ");
    let mut triggered = 0;
    let refusing = async {
        // The broker applies a policy a moment after it has taken it.
        while triggered < 10 || !scene.has_found(Code::MessagesRefused, &[&refused]).await {
            scene.trigger("a.good").await;
            triggered += 1;
        }
    };
    tokio::time::timeout(SOON, refusing).await.unwrap();
    scene.fixture.has(Code::MessagesRefused).await;
    scene.policy_of(&format!("^{main}$"), DROP_HEAD).await;
    scene.found(Code::MessagesRefused, &[&format!("dropped by the full queue {main}, ")]).await;
    scene.look_past(DROP_HEAD).await;
    let _worker = scene.worker().await;
    scene.all(triggered, "succeeded").await;
}

/// The main queue drops its oldest tickets into the failed queue, and that drops them in turn: only the rows have them.
#[tokio::test]
async fn tickets_dropped_by_a_policy_for_all_queues_are_published_again_when_they_are_long_overdue()
{
    let scene = Scene::new().await;
    scene.policy(DROP_HEAD).await;
    let mut triggered = 0;
    let dropping = async {
        // More than both queues hold, once the broker applies the policy.
        while triggered < 12 || scene.depth(&scene.main()).await > MAX_LENGTH {
            scene.trigger("a.good").await;
            triggered += 1;
        }
    };
    tokio::time::timeout(SOON, dropping).await.unwrap();
    let published = async || (scene.unpublished().await == 0).then_some(());
    scene.platform().eventually("all tickets are published", SOON, published).await;
    scene.look_past(DROP_HEAD).await;
    // Five minutes later.
    let ageing =
        "UPDATE sexton.executions SET next_attempt_at = next_attempt_at - interval '10 minutes',
                      ticket_published_at = ticket_published_at - interval '10 minutes'
                  WHERE state = 'pending'";
    sqlx::query(ageing).execute(scene.platform().store().pool()).await.unwrap();
    let _worker = scene.worker().await;
    scene.all(triggered, "succeeded").await;
}

#[tokio::test]
async fn doctor_finds_queues_vanished() {
    // The sweep declares what is gone again: so seldom that a worker comes upon it first.
    let scene = Scene::sweeping_every("30000").await;
    let _worker = scene.worker().await;
    // A ticket may wait for five seconds until the relay publishes it, and for two in the queue; the rest is for a busy
    // machine.
    scene.policy(r#"{"expires":20000}"#).await;
    let delay = retry_queue(scene.namespace(), &PoolName::default_pool(), DELAY_QUEUES_MS[0]);
    let was_gone = format!("queue {delay} was gone, last ");
    for triggered in 1.. {
        // What lies in a queue that goes is lost for five minutes. So each task begins while the queue is not there,
        // and its ticket has left before the queue that it made anew goes.
        let gone = async || scene.has_found(Code::TopologyMissing, &[&delay]).await.then_some(());
        scene.platform().eventually("the queue is gone", SOON, gone).await;
        scene.trigger("a.second").await;
        scene.all(triggered, "succeeded").await;
        // The sweep may have come first, this time.
        if scene.has_found(Code::QueuesVanished, &[&was_gone]).await {
            break;
        }
    }
    scene.fixture.has(Code::QueuesVanished).await;
}
